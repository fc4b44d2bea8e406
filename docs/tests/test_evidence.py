# SPDX-License-Identifier: BSD-2-Clause
"""The tests by which SECURITY.md and enforcement.md show what they claim exist."""

import re
from functools import cache

import pytest

from testing.documents import pages

NAMED = re.compile(r"`(Test[A-Z]\w*|test_\w+|(?!shai_)[a-z]+(?:_[a-z]+){3,})`")
"""Names of tests in Go, in Python, and in C, where they are sentences."""
DEFINED = {
    ".go": re.compile(r"^func (Test\w+)\(", re.MULTILINE),
    ".py": re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE),
    ".c": re.compile(r"^(\w+)\(void \*\*", re.MULTILINE),
}


@cache
def existing() -> frozenset[str]:
    """Return the names of all tests of the project."""
    found: set[str] = set()
    for source in pages.sources():
        path = pages.ROOT / source
        if path.suffix in DEFINED and ("test" in path.name or "tests" in path.parts):
            found.update(DEFINED[path.suffix].findall(path.read_text()))
    return frozenset(found)


def missing(text: str) -> set[str]:
    return set(NAMED.findall(text)) - existing()


@pytest.mark.parametrize("name", ["SECURITY.md", "docs/enforcement.md"])
def test_named_tests_exist(name: str) -> None:
    assert not missing((pages.ROOT / name).read_text())


def test_a_test_that_does_not_exist_is_found() -> None:
    assert missing("`TestNowhere`, `the_output_of_nothing_leads`, `name` and `TestAttacks`") == {
        "TestNowhere",
        "the_output_of_nothing_leads",
    }
