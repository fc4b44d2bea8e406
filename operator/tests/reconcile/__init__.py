# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the pure decisions: no servers, no clocks."""
