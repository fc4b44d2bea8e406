# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the whole operator in a real API server."""
