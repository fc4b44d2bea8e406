# SPDX-License-Identifier: BSD-2-Clause
"""Growing pauses between attempts, spread so that many programs do not come back at the same moment."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 15.0
_LEAST_PART = 0.5


class Backoff:
    """The pauses: each is twice as long as the one before, up to ``longest`` seconds, without end.

    Each iteration begins anew; `wait` goes on from where the last one stopped, until `reset`.
    """

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first, self._longest = first, longest
        self._pauses = iter(self)

    def __iter__(self) -> Iterator[float]:
        """Yield pauses in seconds, between half and all of their length."""
        for attempt in itertools.count():
            length = min(self._first * 2.0 ** min(attempt, 32), self._longest)
            yield length * random.uniform(_LEAST_PART, 1.0)  # noqa: S311 - spreads retries, is no secret

    def reset(self) -> None:
        """Begin with the first pause again."""
        self._pauses = iter(self)

    async def wait(self) -> None:
        """Wait for the next pause."""
        await asyncio.sleep(next(self._pauses))
