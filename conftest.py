# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures, settings and order of all tests."""

import signal

import pytest
from hypothesis import settings

pytest_plugins = ["testing.fixtures"]

# A property says nothing about time: on a busy machine any example may exceed a deadline.
settings.register_profile("shai", deadline=None)
settings.load_profile("shai")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in a job that a script has put into the background. Programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the tests that draw their questions."""
    parser.addoption("--cases", type=int, default=0, help="random evaluations that Z3 decides, too; 0: as in CI")
    parser.addoption("--seed", type=int, default=None, help="the seed that a failed random test has printed")


LONGEST = ("operator/tests/providers/", "operator/tests/running/", "docs/tests/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: one that began last would keep a single processor busy."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
