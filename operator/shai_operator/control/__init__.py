# SPDX-License-Identifier: BSD-2-Clause
"""The control loops: they observe, ask the pure layer what to do, and do it."""
