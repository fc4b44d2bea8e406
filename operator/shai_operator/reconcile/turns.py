# SPDX-License-Identifier: BSD-2-Clause
"""Whose turn it is to measure on a host: one Benchmark at a time, of one namespace after the other.

A namespace may queue any number of Benchmarks, and delete them when they have ended. So its last turn is not read from
objects: the operator remembers it. After a restart the oldest Benchmark is the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.reconcile.objects import created, name, namespace, status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.objects import Object, Reference

TURNS_REMEMBERED = 4096
"""Turns, by host and namespace, that are remembered. Whose was forgotten has waited longest, and comes first."""


@dataclass(frozen=True)
class Turns:
    """What is measured now, and who has had a turn."""

    measuring: Mapping[str, Reference] = field(default_factory=dict)
    """The Benchmark that measures on each host."""
    had: Sequence[tuple[str, str]] = ()
    """Hosts and namespaces that had a turn there, the longest ago first."""

    def order(self, host: str, benchmarks: Sequence[Object]) -> list[Object]:
        """Sort Benchmarks that wait for a host.

        One that was interrupted is first. Then comes the oldest of the namespace whose turn was longest ago.
        """
        last = {space: number for number, (where, space) in enumerate(self.had, start=1) if where == host}
        return sorted(
            benchmarks,
            key=lambda one: (
                not status(one).get("startTime"),
                last.get(namespace(one), 0),
                created(one),
                namespace(one),
                name(one),
            ),
        )


def taken(had: dict[tuple[str, str], None], host: str, space: str) -> None:
    """Note in ``had``, which is in order of time, that it is a namespace's turn on a host."""
    had.pop((host, space), None)
    had[host, space] = None
    while len(had) > TURNS_REMEMBERED:
        del had[next(iter(had))]
