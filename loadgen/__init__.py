# SPDX-License-Identifier: BSD-2-Clause
"""Drives Sys-E with Locust, measures what enforcement costs, and verifies that policies hold."""
