# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the definitions with a real API server."""
