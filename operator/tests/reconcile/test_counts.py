# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import pytest

from shai_operator.reconcile.counts import IS_READY, count


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(0, "member"), "0 members"),
        (count(1, "member"), "1 member"),
        (count(2, "access"), "2 accesses"),
        (count(1, "member", ("runs it", "run it")), "1 member runs it"),
        (count(3, "member", ("runs it", "run it")), "3 members run it"),
        (count(1, "member", IS_READY, of=1), "1 of 1 member is ready"),
        (count(1, "member", IS_READY, of=3), "1 of 3 members is ready"),
        (count(0, "member", IS_READY, of=1), "0 of 1 members are ready"),
        (count(3, "member", IS_READY, of=3), "3 of 3 members are ready"),
    ],
)
def test_numbers_and_words_agree(written: str, expected: str) -> None:
    assert written == expected
