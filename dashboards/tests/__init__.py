# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the boards, of what is generated from them, and of their queries with a real Prometheus."""
