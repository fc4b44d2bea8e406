# SPDX-License-Identifier: BSD-2-Clause
"""Tests of jobs, queues and the controllers of runs."""
