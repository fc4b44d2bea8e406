# SPDX-License-Identifier: BSD-2-Clause
"""The part of a JailPool's status that is about hosts and virtual machines, and its events."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.actions import NORMAL, WARNING, Emit
from shai_operator.reconcile.conditions import FALSE, TRUE
from shai_operator.reconcile.machines import REPLACING, has_machines, jails, machine_address
from shai_operator.reconcile.objects import name, spec, status
from shai_operator.reconcile.orphans import DELETE
from shai_operator.reconcile.surveys import BROKEN, RUNNING, STOPPED, machine_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shai_operator.reconcile.machines import Replacements
    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.surveys import HostSurvey

_MESSAGE_LIMIT = 1024
_PLACEMENT_LIMIT = 8192
"""Characters that the schema allows, of a message and of the line about all hosts."""
_MEMORY_STEP = 256
"""Free memory is written in steps of so many MiB: it changes all the time, and every write is an event for watchers."""
_PENDING, _UNKNOWN = "Pending", "Unknown"
STATES = (RUNNING, STOPPED, BROKEN, _PENDING, REPLACING, _UNKNOWN)
"""States of a virtual machine."""


def write(
    pool: Object,
    known: Sequence[Observation],
    surveys: Mapping[str, HostSurvey],
    replacements: Replacements,
    orphans: Sequence[str],
) -> dict[str, Any]:
    """Return the fields; none for a pool without virtual machines."""
    if not has_machines(pool):
        return {}
    machines = _machines(pool, known, surveys, replacements)
    before = {row["name"]: row.get("reached") for row in status(pool).get("hosts") or ()}
    hosts = [_host(host, before.get(host["name"]), known, machines, surveys) for host in spec(pool).get("hosts") or ()]
    images = {"machineImage": replacements.stable, "rejectedMachineImage": replacements.rejected}
    return {
        "hosts": hosts,
        "virtualMachines": machines,
        "orphans": list(orphans),
        "placement": "; ".join(_line(host) for host in hosts)[:_PLACEMENT_LIMIT],
        **{field: image for field, image in images.items() if image},
    }


def events(
    pool: Object, surveys: Mapping[str, HostSurvey], replacements: Replacements, orphans: Sequence[str]
) -> Iterator[Emit]:
    """Yield events about hosts and orphans that were all right before, and about an image that is rejected."""
    troubled = {row["name"] for row in status(pool).get("hosts") or () if row.get("message")}
    for host, survey in sorted(surveys.items()):
        if not survey.reached and host not in troubled:
            yield Emit(pool, WARNING, survey.reason, survey.message[:_MESSAGE_LIMIT])
    new = sorted(set(orphans) - set(status(pool).get("orphans") or ()))
    if new:
        message = (
            f"no pool wants {', '.join(new)}, which this operator has made. Nothing is deleted by itself: to delete "
            f"them, kubectl annotate --overwrite jailpool {name(pool)} {DELETE}={','.join(new)}"
        )
        yield Emit(pool, WARNING, "OrphansFound", message[:_MESSAGE_LIMIT])
    if replacements.rolled_back:
        message = f"virtual machines go back to image {replacements.target}: {replacements.rolled_back}"
        yield Emit(pool, WARNING, "MachineImageRejected", message[:_MESSAGE_LIMIT])
    before = str(status(pool).get("machineImage") or "")
    if before and replacements.stable != before:
        yield Emit(pool, NORMAL, "MachineImageUpdated", f"all virtual machines have image {replacements.stable}")


def _machines(
    pool: Object, known: Sequence[Observation], surveys: Mapping[str, HostSurvey], replacements: Replacements
) -> list[dict[str, Any]]:
    numbers = sorted({member.ordinal // jails(pool) for member in known})
    return [_machine(pool, number, known, surveys, replacements) for number in numbers]


def _machine(
    pool: Object,
    number: int,
    known: Sequence[Observation],
    surveys: Mapping[str, HostSurvey],
    replacements: Replacements,
) -> dict[str, Any]:
    members = [member for member in known if member.ordinal // jails(pool) == number]
    host = next((member.host for member in members if member.host), "")
    survey = surveys.get(host)
    found = survey.own.get(machine_name(name(pool), number)) if survey else None
    state, message = _PENDING, ""
    if number in replacements.replacing:
        state = REPLACING
    elif survey is None or not survey.reached:
        state, message = (_UNKNOWN, survey.message) if survey else (_PENDING, "")
    elif found is not None:
        state, message = found.state, found.message
    else:
        state, message = _foreign(pool, machine_name(name(pool), number), survey)
    failed = next((member.failed for member in members if member.failed), None)
    written = {
        "name": machine_name(name(pool), number),
        "host": host,
        "address": machine_address(pool, number),
        "image": replacements.image(number),
        "state": state,
        "jails": len(members),
        "message": (message or (failed.message if failed else ""))[:_MESSAGE_LIMIT],
    }
    return {field: value for field, value in written.items() if value or field == "jails"}


def _foreign(pool: Object, called: str, survey: HostSurvey) -> tuple[str, str]:
    """Return state and message of a pool's machine that has not this operator's mark; if there is none, it waits."""
    for machine in survey.machines:
        if machine.name == called and machine.pool == name(pool):
            return machine.state, (
                "it carries the mark of another operator, or of this one before the Secret shai-authority was lost or "
                "made anew: nothing is changed there. Restore the Secret, or adopt the machine (docs/operations.md)"
            )
    return _PENDING, ""


def _host(
    listed: Mapping[str, Any],
    before: str | None,
    known: Sequence[Observation],
    machines: Sequence[Mapping[str, Any]],
    surveys: Mapping[str, HostSurvey],
) -> dict[str, Any]:
    called = listed["name"]
    survey = surveys.get(called)
    reached = TRUE if survey is not None and survey.reached else FALSE if before in {TRUE, FALSE} else _UNKNOWN
    message = (
        "given up: spec says that it is gone" if listed.get("state") == "Gone" else survey.message if survey else ""
    )
    free = survey.free_memory_mebibytes // _MEMORY_STEP * _MEMORY_STEP if survey else 0
    return {
        "name": called,
        "reached": reached,
        "freeMemoryMebibytes": free,
        "virtualMachines": Counter(machine.get("host") for machine in machines)[called],
        "jails": sum(1 for member in known if member.host == called),
        **({"version": survey.version[:253]} if survey and survey.version else {}),
        **({"message": message[:_MESSAGE_LIMIT]} if message else {}),
    }


def _line(host: Mapping[str, Any]) -> str:
    """Return a host in a few words, for kubectl get."""
    figures = f"{host['virtualMachines']} VM, {host['jails']} jails"
    return f"{host['name']}: {figures}, {host.get('version') or 'not reached'}"
