# SPDX-License-Identifier: BSD-2-Clause
"""Grafana dashboards and the queries behind them, as code. See docs/dashboards.md."""
