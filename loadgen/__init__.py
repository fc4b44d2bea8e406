# SPDX-License-Identifier: BSD-2-Clause
"""Drives Sys-E with Locust, measures what enforcement costs, and shows that policies hold."""
