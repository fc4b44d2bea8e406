# SPDX-License-Identifier: BSD-2-Clause
"""The work on a pool's members: installing, repairing, draining, removing, swapping bundles."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import members
from shai_operator.reconcile.members import (
    ApplyBundle,
    BringUp,
    Observation,
    Place,
    ProvisionMembers,
    RemoveMembers,
)
from shai_operator.reconcile.tenants import NOBODY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from shai_operator.reconcile.bundles import Bundle
    from shai_operator.reconcile.members import Standing

_RENEWAL = timedelta(days=29)
"""How long before its end a certificate is renewed. The installation itself renews a certificate earlier than this, so
an installation that is started for this reason always renews it."""
_BACK_OFF_LIMIT = 6
"""How often the delay before a member is repaired again is doubled at most."""
ENDING_JOBS = ("provision", "remove", "apply")
"""Jobs that end by themselves. A bringUp may not: its author's task may never get ready, and must not hold the pool."""


@dataclass(frozen=True)
class Care:
    """The settings of a pool's spec for the treatment of its members."""

    replicas: int = 1
    max_unavailable: int | str = 1
    unready_first: bool = False
    drain_seconds: int = 30
    failure_threshold: int = 3
    jails: int = 1
    """How many members share a virtual machine, and are updated together."""

    shared: bool = False
    """Whether members are in virtual machines, which are made for them and destroyed after them."""

    @property
    def unavailable(self) -> int:
        """The number of members that may be unavailable during an update; at least 1, so that it can proceed."""
        text = str(self.max_unavailable)
        number = self.replicas * int(text[:-1]) // 100 if text.endswith("%") else int(text)
        return max(number, 1)


def care(spec: Mapping[str, Any], jails: int | None = None) -> Care:
    """Read the settings from a JailPool's spec; ``jails`` is None if members have no virtual machines."""
    usual = Care()
    scale_in, healing = spec.get("scaleIn") or {}, spec.get("healing") or {}
    return Care(
        replicas=int(spec.get("replicas", usual.replicas)),
        max_unavailable=(spec.get("update") or {}).get("maxUnavailable", usual.max_unavailable),
        unready_first=scale_in.get("policy") == "UnreadyFirst",
        drain_seconds=int(scale_in.get("drainSeconds", usual.drain_seconds)),
        failure_threshold=int(healing.get("failureThreshold", usual.failure_threshold)),
        jails=jails or 1,
        shared=jails is not None,
    )


def ordinals(
    wanted: Care, known: Iterable[Observation], held: Collection[int] = frozenset(), surge: int = 0
) -> tuple[int, ...]:
    """Choose the ordinals of the members that should exist: as many as the pool has replicas, and ``surge`` more.

    If there are too many members, those that belong to no namespace are removed first, then those of the namespace that
    has the most: no namespace loses its last one while another has two. Among them, those with the highest ordinals are
    removed first, or those that are not ready. If there are too few, members that are being drained are kept before new
    ones are made, unless their removal has started. Those in ``held`` are removed for now, and no others take their
    places.
    """
    size = wanted.replicas + surge
    staying, leaving, free = [], [], []
    for member in known:
        if member.draining_since is None or member.ordinal in held:
            staying.append(member)
        elif member.configuration and not member.busy("remove"):
            free.append(member)
        else:
            leaving.append(member)
    if len(staying) >= size:
        while len(staying) > size:
            staying.remove(_first_to_go(staying, wanted, held))
        return tuple(sorted({member.ordinal for member in staying} - set(held)))
    chosen = {member.ordinal for member in staying}
    chosen.update(sorted(member.ordinal for member in free)[: size - len(chosen)])
    taken = chosen | {member.ordinal for member in leaving} | {member.ordinal for member in free}
    ordinal = 0
    while len(chosen) < size:
        if ordinal not in taken:
            chosen.add(ordinal)
        ordinal += 1
    return tuple(sorted(chosen - set(held)))


def _first_to_go(staying: Sequence[Observation], wanted: Care, held: Collection[int]) -> Observation:
    sizes = Counter(member.tenant for member in staying)
    sizes[NOBODY] = len(staying) + 1

    def rank(member: Observation) -> tuple[bool, int, bool, int]:
        return member.ordinal in held, sizes[member.tenant], _unready(member, wanted), member.ordinal

    return max(staying, key=rank)


def _unready(member: Observation, wanted: Care) -> bool:
    return wanted.unready_first and not _up(member)


def _up(member: Observation) -> bool:
    return member.monitor is not None and member.monitor.ready


@dataclass(frozen=True)
class Kept:
    """A member that stays."""

    member: Observation
    standing: Standing
    place: Place | None
    """The member's place; None when there is no room for it."""
    digest: str
    """The digest with which to provision the member; empty when it is not known, and the member stays as it is."""
    bundle: Bundle | None
    """The bundle that the member should have in force; None: the one that it has."""
    newest: str = ""
    """The release that the member has when nothing is under way; empty: none is wanted."""


def provision(
    kept: Sequence[Kept], wanted: Care, guarded: Collection[frozenset[str]], now: datetime
) -> Iterator[ProvisionMembers]:
    """Yield installations: new members, members that do not answer, and as many others as may be unavailable.

    The others are members whose configuration has changed or whose certificate ends soon. Members that share a virtual
    machine are taken together, even if they are more than may be unavailable, when no other member is away.

    At least one of each group of members in ``guarded`` stays ready: a rollout needs a member with the stable release
    for comparison. Members that run nothing, because their namespace may not use the pool, are not missed.
    """
    away = sum(
        1 for entry in kept if entry.member.configuration and not entry.standing.ready and not entry.member.withdrawn
    )
    away += max(wanted.replicas - len(kept), 0)  # those that go with virtual machines that are replaced
    budget = wanted.unavailable - away
    ready = {entry.member.name for entry in kept if entry.standing.ready}
    guards = [set(group & ready) for group in guarded]
    due: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for _, unit in groupby(kept, key=lambda entry: entry.member.ordinal // wanted.jails):
        causes = [(entry, _cause(entry, wanted, now)) for entry in unit if entry.place is not None]
        updated = [entry for entry, cause in causes if cause in {_CHANGED, _EXPIRING} and entry.standing.ready]
        going = {entry.member.name for entry in updated}
        allowed = len(updated) <= budget or budget == wanted.unavailable > 0
        if updated and (not allowed or any(group and group <= going for group in guards)):
            causes = [(entry, cause) for entry, cause in causes if entry not in updated]
        else:
            budget, guards = budget - len(updated), [group - going for group in guards]
        for entry, cause in causes:
            if cause and entry.place is not None:
                due[entry.place.host, cause].append(entry.place)
    for (host, cause), places in sorted(due.items()):
        yield ProvisionMembers(host, tuple(places), cause)


_NEW, _CHANGED, _EXPIRING, _DEAD = "new", "changed", "certificate due", "not answering"


def _cause(entry: Kept, wanted: Care, now: datetime) -> str:
    member = entry.member
    if member.busy(*ENDING_JOBS) or not entry.digest:
        return ""
    if member.failed is not None and now < member.failed.retry_at():
        return ""
    if not member.configuration:
        return _NEW
    if member.configuration != entry.digest:
        return _CHANGED
    if member.certificate_ends is not None and now >= member.certificate_ends - _RENEWAL:
        return _EXPIRING
    patience = wanted.failure_threshold * 2 ** min(member.healed, _BACK_OFF_LIMIT)
    return _DEAD if not _up(member) and member.failures >= patience else ""


def drained(member: Observation, wanted: Care, now: datetime) -> bool:
    """Whether a member can be removed: it has no sessions, or the time for draining is over."""
    if member.monitor is None or not member.monitor.sessions or not member.configuration:
        return True
    since = member.draining_since or now
    return now - since >= timedelta(seconds=wanted.drain_seconds)


def remove(
    leaving: Sequence[Observation], wanted: Care, now: datetime, staying: Collection[int] = frozenset()
) -> Iterator[RemoveMembers]:
    """Yield removals of the members that are drained.

    A virtual machine is condemned when the last of its members goes; ``staying`` are the ordinals that need theirs.
    """
    due: dict[str, list[Place]] = defaultdict(list)
    for member in leaving:
        waits = member.removal_failed is not None and now < member.removal_failed.retry_at()
        if not member.busy(*ENDING_JOBS) and not waits and drained(member, wanted, now):
            due[member.host].append(member.place)
    going = {place.ordinal for places in due.values() for place in places}
    needed = {ordinal // wanted.jails for ordinal in staying}
    needed |= {member.ordinal // wanted.jails for member in leaving if member.ordinal not in going}
    for host, places in sorted(due.items()):
        condemned = frozenset(place.ordinal // wanted.jails for place in places) - needed
        yield RemoveMembers(host, tuple(places), condemned if wanted.shared else frozenset())


def forget_configuration(leaving: Sequence[Observation], removals: Sequence[RemoveMembers]) -> list[Observation]:
    """Clear the configuration of members whose removal starts: they can no longer be kept, only made anew."""
    going = {place.name for removal in removals for place in removal.members}
    return [replace(member, configuration="") if member.name in going else member for member in leaving]


def serve(kept: Kept, now: datetime) -> ApplyBundle | BringUp | None:
    """Return the action that makes a member serve its bundle; None when it does, or cannot yet."""
    member, bundle = kept.member, kept.bundle
    if member.busy(*ENDING_JOBS) or bundle is None or member.monitor is None or not member.configuration:
        return None
    if member.monitor.bundle != bundle.label:
        refused = member.refused.get(bundle.label)
        waits = refused is not None and now < refused.retry_at()
        return None if waits else ApplyBundle(member.place, bundle)
    if member.busy():
        return None
    wanted = members.tasks(bundle.release)
    unfinished = members.idle_tasks(member.monitor, wanted)
    unfinished += [entry.pipeline for entry in wanted if entry.pipeline not in member.monitor.analyzed]
    failed = member.bring_up_failed
    if not unfinished or (failed is not None and now < failed.retry_at()):
        return None
    return BringUp(member.place, wanted)


def waits(known: Iterable[Observation], wanted: Care, now: datetime) -> float | None:
    """Return the seconds until the first back-off or drain ends; None when there is none."""
    moments = []
    for member in known:
        attempts = [member.failed, member.bring_up_failed, *member.refused.values()]
        moments += [attempt.retry_at() for attempt in attempts if attempt is not None]
        if member.draining_since is not None:
            moments.append(member.draining_since + timedelta(seconds=wanted.drain_seconds))
    left = [(moment - now).total_seconds() for moment in moments if moment > now]
    return min(left, default=None)
