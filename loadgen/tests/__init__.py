# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the load generator and of the measurement."""
