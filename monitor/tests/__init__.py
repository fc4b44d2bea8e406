# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the monitor as a person sees it: its pages, in a browser."""
