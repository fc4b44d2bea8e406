# SPDX-License-Identifier: BSD-2-Clause
"""Measures the offline analysis and the registration of documents: python -m testing.analysing --help."""
