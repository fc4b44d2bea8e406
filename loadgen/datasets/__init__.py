# SPDX-License-Identifier: BSD-2-Clause
"""Data for Sys-E: making them, and reading who is in them."""
