# SPDX-License-Identifier: BSD-2-Clause
"""Looks into a queue, as nothing but tests has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shai_operator.control.queue import WorkQueue


def idle(queue: WorkQueue) -> bool:
    """Whether nothing waits or runs; what waits for its time does not count."""
    return not queue._waiting and not queue._running  # noqa: SLF001
