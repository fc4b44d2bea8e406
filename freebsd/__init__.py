# SPDX-License-Identifier: BSD-2-Clause
"""What runs on FreeBSD only: its packages, and the checks on a bare kernel."""
