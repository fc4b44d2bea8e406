# SPDX-License-Identifier: BSD-2-Clause
"""Looks into a work queue, which only tests do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shai_operator.control.queue import WorkQueue


def idle(queue: WorkQueue) -> bool:
    """Whether nothing waits or runs; objects with a delay do not count."""
    return not queue._waiting and not queue._running and not queue._again  # noqa: SLF001
