# SPDX-License-Identifier: BSD-2-Clause
"""Measures the operator with many definitions and many members: python -m testing.scaling --help."""
