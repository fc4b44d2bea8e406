# SPDX-License-Identifier: BSD-2-Clause
"""Boards and panels as Grafana's JSON, by grafana-foundation-sdk."""
