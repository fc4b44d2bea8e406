# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the whole operator with a real API server."""
