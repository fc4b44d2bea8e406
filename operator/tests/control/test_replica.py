# SPDX-License-Identifier: BSD-2-Clause
"""What a replica does that loses its lease, and how it waits."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from shai_operator.control import replica
from shai_operator.control.backoff import Backoff
from shai_operator.control.leases import Timing

if TYPE_CHECKING:
    from collections.abc import Iterator

_STUCK = """
import asyncio, time
from shai_operator.control import replica
from shai_operator.control.leases import Term, Timing

async def main():
    async with asyncio.timeout(0.1) as limit:
        with replica._bounded(Term(limit), Timing.of(3)):
            time.sleep(60)

asyncio.run(main())
"""


def test_a_replica_that_cannot_end_what_it_does_ends() -> None:
    """The event loop is stuck, so that nothing in it can end the body."""
    environment = {**os.environ, "PYTHONPATH": str(Path(replica.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", _STUCK], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == replica.NOT_ENDED, done.stderr
    assert "has not ended within 1 s; the process ends" in done.stderr


@given(st.integers(3, 3600))
def test_who_loses_a_lease_has_time_to_end_before_another_may_take_it(duration: int) -> None:
    times = Timing.of(duration)
    assert times.give_up < duration
    # A renewal that fails is repeated before the lease is given up.
    assert 2 * (times.renew + times.answer) <= times.give_up


@given(st.floats(0.01, 10), st.floats(10, 1000))
def test_pauses_grow_to_a_limit_and_are_spread(first: float, longest: float) -> None:
    def lengths(pauses: Iterator[float]) -> list[float]:
        return list(islice(pauses, 60))

    backoff = Backoff(first, longest)
    for number, pause in enumerate(lengths(iter(backoff))):
        whole = min(first * 2.0**number, longest)
        assert whole / 2 <= pause <= whole
    assert lengths(iter(backoff)) != lengths(iter(backoff))
