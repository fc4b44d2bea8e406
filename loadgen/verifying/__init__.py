# SPDX-License-Identifier: BSD-2-Clause
"""Whether policies hold: who finds what, and a leak attempt."""
