# SPDX-License-Identifier: BSD-2-Clause
"""Runs the queries of all panels against a Prometheus, and says which of them show nothing."""
