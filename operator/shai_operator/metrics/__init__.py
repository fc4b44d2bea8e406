# SPDX-License-Identifier: BSD-2-Clause
"""The operator's metrics: their declarations, the counters of the process, and what is read from objects."""
