# SPDX-License-Identifier: BSD-2-Clause
"""The query table: every panel of every board. No other place has PromQL for panels."""
