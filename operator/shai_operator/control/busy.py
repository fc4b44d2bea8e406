# SPDX-License-Identifier: BSD-2-Clause
"""Measures for how long a coroutine keeps the event loop, without the time in which it waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

_T = TypeVar("_T")


class Busy(Generic[_T]):
    """Await it once, in place of ``work``."""

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self._work = work
        self.seconds = 0.0
        """For how long the loop was kept until now."""

    def __await__(self) -> Generator[Any, Any, _T]:
        """Run ``work`` as part of the awaiting task."""
        step, argument = self._work.send, None
        while True:
            began = time.perf_counter()
            try:
                waits_for = step(argument)
            except StopIteration as end:
                found: _T = end.value
                return found
            finally:
                self.seconds += time.perf_counter() - began
            try:
                argument, step = (yield waits_for), self._work.send
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is for the work
                argument, step = error, self._work.throw
