# SPDX-License-Identifier: BSD-2-Clause
"""What is on hosts with this operator's mark, and no pool wants it: virtual machines, and jails in a pool's own ones.

Orphans are listed in the pool's status, with an event. They are deleted only when an annotation names them after that.
A name is taken out of the annotation when its orphan is gone, or when there was none: a later orphan of the same name
is not meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.reconcile.actions import SetAnnotation
from shai_operator.reconcile.machines import has_machines
from shai_operator.reconcile.objects import GROUP, name, spec, status
from shai_operator.reconcile.surveys import machine_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from shai_operator.reconcile.objects import Inventory, Object
    from shai_operator.reconcile.surveys import HostSurvey

_SLASHES = 2
_MOST, _LENGTH = 256, 252
"""What the schema allows. Directories on a host can have any names."""
DELETE = f"{GROUP}/delete-orphans"
"""The annotation of a JailPool with the names of orphans to delete, separated by commas."""


@dataclass(frozen=True)
class RemoveOrphans:
    """Destroy virtual machines on a host, and remove jails from a pool's own machines there, as one job."""

    host: str
    machines: frozenset[str] = frozenset()
    jails: frozenset[tuple[str, str]] = frozenset()
    """Machine and jail."""


def find(
    pool: Object, surveys: Mapping[str, HostSurvey], wanted: Collection[int], per_machine: int, inventory: Inventory
) -> list[str]:
    """Return the orphans on the pool's hosts, as host/machine or host/machine/jail.

    ``wanted`` are the ordinals of the members that exist or should. Where something has been done on a host since its
    survey, or nobody could reach it, the orphans are those found before; also where there was no survey since the
    operator has started.
    """
    before = status(pool).get("orphans") or ()
    pools = {name(other) for other in inventory.all("JailPool") if has_machines(other)} | {name(pool)}
    found: list[str] = []
    listed = {str(host["name"]) for host in spec(pool).get("hosts") or () if host.get("state") != "Gone"}
    for host in sorted(listed | surveys.keys()) if has_machines(pool) else ():
        survey = surveys.get(host)
        if survey is None or survey.stale or not survey.reached:
            found += [orphan for orphan in before if orphan.partition("/")[0] == host]
        else:
            own = {machine_name(name(pool), ordinal // per_machine) for ordinal in wanted}
            members = {f"{name(pool)}-{ordinal}" for ordinal in wanted}
            found += [f"{host}/{orphan}"[:_LENGTH] for orphan in _on(name(pool), survey, own, members, pools)]
    return list(dict.fromkeys(found))[:_MOST]


def _on(
    pool: str, survey: HostSurvey, machines: Collection[str], members: Collection[str], pools: Collection[str]
) -> Iterator[str]:
    for called, machine in sorted(survey.own.items()):
        if machine.pool not in pools or (machine.pool == pool and called not in machines):
            yield called
        elif machine.pool == pool:
            yield from (f"{called}/{jail}" for jail in machine.jails if jail not in members)
    # A machine that was not finished has no mark yet.
    yield from (machine.name for machine in survey.machines if not machine.pool and machine.name not in machines)


def removals(pool: Object, found: Collection[str], surveys: Mapping[str, HostSurvey]) -> Iterator[RemoveOrphans]:
    """Yield the removals that the pool's annotation asks for: of orphans that its status lists already.

    While something is done on a host, it is not known whether they are still there.
    """
    asked = {orphan for orphan in _named(pool) if _is_meant(pool, orphan, found)}
    # A jail's name with a slash is none of ours, and what is before the slash can be a member.
    parts = [orphan.split("/") for orphan in sorted(asked) if orphan.count("/") <= _SLASHES]
    for host in sorted({part[0] for part in parts}):
        if host not in surveys or surveys[host].stale or not surveys[host].reached:
            continue
        here = [part[1:] for part in parts if part[0] == host]
        machines = frozenset(part[0] for part in here if len(part) == 1)
        jails = frozenset((part[0], part[1]) for part in here if len(part) > 1 and part[0] not in machines)
        yield RemoveOrphans(host, machines, jails)


def forget(pool: Object, found: Collection[str]) -> Iterator[SetAnnotation]:
    """Yield the change of the pool's annotation that takes out of it what is done, and what named no orphan."""
    named = _named(pool)
    left = [orphan for orphan in named if _is_meant(pool, orphan, found)]
    if left != named:
        yield SetAnnotation(pool, DELETE, ",".join(left))


def _named(pool: Object) -> list[str]:
    annotation = str((pool["metadata"].get("annotations") or {}).get(DELETE) or "")
    return [part for part in map(str.strip, annotation.split(",")) if part]


def _is_meant(pool: Object, orphan: str, found: Collection[str]) -> bool:
    """Whether an orphan was there when it was named, as far as the status knows, and still is."""
    return orphan in found and orphan in (status(pool).get("orphans") or ())
