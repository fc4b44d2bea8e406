# SPDX-License-Identifier: BSD-2-Clause
"""What a pool's virtual machines boot from: descriptions of images, and seeds for the first boot."""
