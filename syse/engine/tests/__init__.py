# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the engine as a whole."""
