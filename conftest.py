# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures that all tests can use."""

pytest_plugins = ["testing.fixtures"]
