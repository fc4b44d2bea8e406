# SPDX-License-Identifier: BSD-2-Clause
"""Tests of what is installed."""
