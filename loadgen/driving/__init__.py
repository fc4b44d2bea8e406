# SPDX-License-Identifier: BSD-2-Clause
"""Load: users who log in and search, and the process that simulates them with Locust."""
