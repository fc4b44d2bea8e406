# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of pools, their members and their rollouts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from shai_operator.metrics.samples import COMPLETED, ROLLED_BACK, Sample, Sharing
from shai_operator.reconcile import machine_status
from shai_operator.reconcile.conditions import FALSE, TRUE
from shai_operator.reconcile.objects import deleting, name, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from shai_operator.metrics.samples import Snapshot
    from shai_operator.reconcile.judging import Usage
    from shai_operator.reconcile.objects import Object

_STATES = {
    "current": "replicas",
    "ready": "readyReplicas",
    "available": "availableReplicas",
    "updated": "updatedReplicas",
}
"""Values of the label ``state``, and the fields of the status that they are read from."""


_MEBIBYTE = 1024 * 1024


def samples(snapshot: Snapshot) -> Iterator[Sample]:
    """Yield the samples of all pools."""
    for pool in snapshot.objects["JailPool"]:
        spaces = dict.fromkeys(str(entry["name"]) for entry in status(pool).get("namespaces") or ())
        # What is of the whole pool has the label of a namespace only if there is no other one.
        labels = name(pool), next(iter(spaces)) if len(spaces) == 1 else ""
        yield from _members(pool, labels)
        yield from _hosts(pool, labels)
        yield from _rollouts(pool)
        for space in spaces:
            sharing = Sharing(name(pool), space)
            yield from _tracks(sharing, snapshot.tracks.get(sharing, {}))
            ended = snapshot.rollouts.get(sharing, {})
            for result in (COMPLETED, ROLLED_BACK):
                yield Sample("shai_rollouts_total", (*sharing, result), ended.get(result, 0))


def _tracks(sharing: Sharing, tracks: Mapping[str, Usage]) -> Iterator[Sample]:
    for track, usage in tracks.items():
        yield Sample("shai_rollout_track_denial_ratio", (*sharing, track), float(usage.denials))
        seconds = float(usage.cost) / 1e6
        yield Sample("shai_rollout_track_decision_seconds_per_session", (*sharing, track), seconds)
        yield Sample("shai_rollout_track_sessions", (*sharing, track), usage.sessions)


def _members(pool: Object, labels: tuple[str, str]) -> Iterator[Sample]:
    provider, known = str(spec(pool).get("provider") or ""), status(pool)
    desired = 0 if deleting(pool) else int(spec(pool).get("replicas", 1))
    yield Sample("shai_pool_members", (*labels, provider, "desired"), desired)
    for state, field in _STATES.items():
        yield Sample("shai_pool_members", (*labels, provider, state), int(known.get(field) or 0))
    for row in known.get("members") or ():
        member = (name(pool), str(row.get("namespace") or ""), str(row["name"]))
        described = (str(row.get(field) or "") for field in ("host", "image", "release"))
        yield Sample("shai_member_info", (*member, provider, *described), 1)
        yield Sample("shai_member_ready", member, row.get("ready") == TRUE)


def _hosts(pool: Object, labels: tuple[str, str]) -> Iterator[Sample]:
    known = status(pool)
    given_up = {host["name"] for host in spec(pool).get("hosts") or () if host.get("state") == "Gone"}
    machines = Counter((str(row.get("host") or ""), str(row["state"])) for row in known.get("virtualMachines") or ())
    for row in known.get("hosts") or ():
        host = (*labels, str(row["name"]))
        looked_at = row.get("reached") in {TRUE, FALSE} or row.get("message")
        if looked_at and row["name"] not in given_up:
            yield Sample("shai_host_reached", host, row.get("reached") == TRUE)
        yield Sample("shai_host_free_memory_bytes", host, int(row.get("freeMemoryMebibytes") or 0) * _MEBIBYTE)
        yield Sample("shai_host_jails", host, int(row.get("jails") or 0))
        for state in machine_status.STATES:
            yield Sample("shai_virtual_machines", (*host, state.lower()), machines[str(row["name"]), state])


def _rollouts(pool: Object) -> Iterator[Sample]:
    found: dict[str, Mapping[str, Any]] = {}
    for entry in status(pool).get("namespaces") or ():
        if not entry.get("withdrawn"):
            found[str(entry["name"])] = entry
    for space, entry in found.items():
        labels, rollout = (name(pool), space), entry.get("rollout") or {}
        releases = (str(entry.get(field) or "") for field in ("stableRelease", "candidateRelease"))
        yield Sample("shai_rollout_info", (*labels, *releases, str(rollout.get("reason") or "Pending")), 1)
        yield Sample("shai_rollout_step", labels, int(rollout.get("step") or 0))
        yield Sample("shai_rollout_steps", labels, int(rollout.get("steps") or 0))
