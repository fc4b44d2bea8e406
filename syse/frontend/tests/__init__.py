# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the front end as a whole."""
