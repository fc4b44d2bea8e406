# SPDX-License-Identifier: BSD-2-Clause
"""Data for Sys-E: generates them, and reads their users."""
