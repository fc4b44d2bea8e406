# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the pages: their commands, links, tables, policies."""
