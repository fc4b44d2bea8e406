# SPDX-License-Identifier: BSD-2-Clause
"""Load: people who log in and search, and the process that plays them with Locust."""
