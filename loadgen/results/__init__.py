# SPDX-License-Identifier: BSD-2-Clause
"""From samples to results: estimates with intervals, results.json, the overhead table."""
