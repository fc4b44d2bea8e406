# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the definitions in a real API server."""
