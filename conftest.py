# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures and settings of all tests."""

from hypothesis import settings

pytest_plugins = ["testing.fixtures"]

# A property says nothing about time: on a busy machine any example may exceed a deadline.
settings.register_profile("shai", deadline=None)
settings.load_profile("shai")
