# SPDX-License-Identifier: BSD-2-Clause
"""Makes FreeBSD packages of what `make freebsd` has built, on any system."""
