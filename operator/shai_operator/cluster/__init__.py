# SPDX-License-Identifier: BSD-2-Clause
"""The API server: reads and writes of objects, events and leases."""
