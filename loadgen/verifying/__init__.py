# SPDX-License-Identifier: BSD-2-Clause
"""Verifies that policies hold: a search by several users, and a leak attempt."""
