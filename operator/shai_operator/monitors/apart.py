# SPDX-License-Identifier: BSD-2-Clause
"""One thread for all that members answer, with an event loop of its own.

Whoever answers in the place of a member decides how much there is to receive, to parse and to check. The operator's
own event loop, which answers the API server and holds the Lease, has no part in that but the result. The limits of
`answers` bound what it still waits for: a parser in C lets no other thread run.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")


class Apart:
    """A thread with an event loop, which ends with the process. `run` may be called from any other event loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return what ``work`` returns, or raise what it raises; when this is cancelled, so is ``work``."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


@functools.cache
def members() -> Apart:
    """Return the thread of this process for members' answers: one, so that no number of them crowds out other work."""
    return Apart("members")
