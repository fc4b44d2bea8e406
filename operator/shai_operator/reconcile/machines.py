# SPDX-License-Identifier: BSD-2-Clause
"""The virtual machines of a pool: which of them are replaced now, and from which image.

A machine is replaced when the pool's image changes, and when it fails for good. Its members are drained, removed with
it, and made again. While the image changes there may be further machines, the surge, which are made first. Nothing is
remembered but the status: a machine that is being replaced has this state in its row. If machines of a new image do not
become ready, the image is rejected, and they are made again from the one before. An image that a host cannot get is
not rejected: nothing more is removed until it can be had.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import FALSE, TRUE, Condition
from shai_operator.reconcile.objects import name, spec, status
from shai_operator.reconcile.surveys import address, machine_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.surveys import HostSurvey
    from shai_operator.reconcile.upkeep import Care

PROVIDER = "bhyve"
JAILS = 4
MEMORY_MEBIBYTES = 4096
REPLACING = "Replacing"
_AUTOMATIC = "Automatic"
_READY, _GUEST = "Ready", "GuestUnreachable"
_DOES_NOT_WORK = frozenset({"TaskFailed", "AnalysisFailed"})
"""Reasons of members whose monitors are ready, and which do no work: nothing is lost with them."""
OF_HOSTS = frozenset(
    {
        "HostUnreachable", "HostKeyMismatch", "AuthenticationFailed", "Cancelled", "StorageFull", "NoVirtualization",
        "ImageFetchFailed", "ChecksumMismatch", "ArchitectureMismatch", "ImageMissing", "BridgeConflict", "ClockSkew",
        "TimedOut",
    }
)  # fmt: skip
"""Reasons of failures for which an image is not to blame: of the host, of the mirror, of the spec."""


def has_machines(pool: Object) -> bool:
    """Whether a pool's members are in virtual machines."""
    return spec(pool).get("provider") == PROVIDER


def jails(pool: Object) -> int:
    """Return how many members share a machine; 1 where there are none."""
    return int(spec(pool).get("jails") or JAILS) if has_machines(pool) else 1


def memory_mebibytes(pool: Object) -> int:
    """Return the memory of each of a pool's machines, in MiB."""
    return int((spec(pool).get("virtualMachine") or {}).get("memoryMebibytes") or MEMORY_MEBIBYTES)


def machine_address(pool: Object, number: int) -> str:
    """Return a machine's address; empty when the range has none for it."""
    return address(str((spec(pool).get("network") or {}).get("machines") or ""), number) or ""


def digest(image: str) -> str:
    """Return the SHA-512 of an image ``NAME@SHA512``."""
    return image.rpartition("@")[2]


@dataclass(frozen=True)
class Machine:
    """What is known of one machine."""

    number: int
    name: str
    members: tuple[Observation, ...]
    host: str = ""
    image: str = ""
    """What it was made from; empty while this is not known."""
    surveyed: bool = False
    """Whether the last survey reached its host."""
    replacing: bool = False


@dataclass(frozen=True)
class Replacements:
    """The decision about a pool's machines."""

    machines: Mapping[int, Machine] = field(default_factory=dict)
    held: frozenset[int] = frozenset()
    """The ordinals of machines that have to go now; they are free again when nothing of the machine is left."""
    replacing: frozenset[int] = frozenset()
    """Numbers of the machines that are being replaced."""
    surge: int = 0
    """How many members there are to be beyond the replicas."""
    target: str = ""
    """The image for machines that are made now."""
    stable: str = ""
    rejected: str = ""
    condition: Condition | None = None
    """The condition Progressing, where machines determine it."""
    rolled_back: str = ""
    """Why the image is rejected now; empty: it is not, or was before."""

    def image(self, number: int) -> str:
        """Return the image from which a machine was made, or is to be made."""
        known = self.machines.get(number)
        return known.image if known is not None and "@" in known.image.lstrip("@") else self.target


def decide(
    pool: Object, known: Iterable[Observation], surveys: Mapping[str, HostSurvey], wanted: str, care: Care
) -> Replacements:
    """Decide which machines are replaced. ``wanted`` is the image of the spec; empty: it is not known."""
    if not has_machines(pool):
        return Replacements()
    return _Decision(pool, tuple(known), surveys, wanted, care).made()


class _Decision:
    """One decision about a pool's machines."""

    def __init__(
        self, pool: Object, known: Sequence[Observation], surveys: Mapping[str, HostSurvey], wanted: str, care: Care
    ) -> None:
        self._pool = pool
        self._care = care
        self._status = status(pool)
        self._wanted = wanted or str(self._status.get("machineImage") or "")
        self._stable = str(self._status.get("machineImage") or "")
        self._ordinals = {member.ordinal for member in known}
        self._surge = 0
        self._machines = _machines(pool, known, surveys, self._wanted)
        self._rejected = str(self._status.get("rejectedMachineImage") or "")
        if digest(self._rejected) != digest(self._wanted):
            self._rejected = ""

    def made(self) -> Replacements:
        """Decide."""
        why = "" if self._rejected else self._objection()
        rejected = self._wanted if why else self._rejected
        target = self._stable if rejected else self._wanted
        due = {number: machine for number, machine in self._machines.items() if self._due(machine, target)}
        settings = spec(self._pool).get("virtualMachine") or {}
        automatic = settings.get("replacement") == _AUTOMATIC
        self._surge = self._members_of(int(settings.get("surge") or 0)) if automatic and not rejected else 0
        obstacle = "" if rejected else self._obstacle()
        replacing = self._replacing(due, target, obstacle) if automatic else frozenset()
        each = jails(self._pool)
        held = {ordinal for number in replacing for ordinal in range(number * each, (number + 1) * each)}
        return Replacements(
            machines=self._machines,
            held=frozenset(held),
            replacing=replacing,
            surge=self._surge,
            target=target,
            stable=self._settled(),
            rejected=rejected,
            condition=self._condition(due, replacing, target, rejected, self._why_held(obstacle, automatic=automatic)),
            rolled_back=why,
        )

    def _members_of(self, surge: int) -> int:
        """Return how many members fill the last machine and as many further ones, while the image changes; else 0."""
        each, wanted = jails(self._pool), digest(self._wanted)
        images = {digest(image) for image in (self._stable, *(one.image for one in self._machines.values())) if image}
        if images <= {wanted} or not self._care.replicas:
            return 0
        return surge and surge * each + -self._care.replicas % each

    def _objection(self) -> str:
        """Say why the wanted image is no good; empty: it is, or there is none to return to."""
        if not self._stable or digest(self._stable) == digest(self._wanted):
            return ""
        for machine in self._machines.values():
            if digest(machine.image) != digest(self._wanted):
                continue
            for member in machine.members:
                if self._failed_for_good(member):
                    message = member.failed.message if member.failed else member.insufficient or "it does not get ready"
                    return f"virtual machine {machine.name}, member {member.name}: {message}"
        return ""

    def _failed_for_good(self, member: Observation) -> bool:
        if member.insufficient:
            return True
        failed = member.failed
        if failed is not None and failed.reason in OF_HOSTS:
            return False
        up = member.monitor is not None and member.monitor.ready
        return not up and not member.busy() and member.healed >= self._care.failure_threshold

    def _obstacle(self) -> str:
        """Say why no machine of the wanted image can be made for now, whatever the image is like; empty: one can."""
        for machine in self._machines.values():
            for member in machine.members:
                failed = member.failed if digest(machine.image) == digest(self._wanted) else None
                if failed is not None and failed.reason in OF_HOSTS and not _answers(member):
                    return f"virtual machine {machine.name}: {failed.reason}: {failed.message}"
        return ""

    def _due(self, machine: Machine, target: str) -> bool:
        """Whether a machine has to be replaced."""
        if not machine.host:
            return False
        if machine.image and digest(machine.image) != digest(target):
            return True
        begun = machine.replacing and not all(member.configuration for member in machine.members)
        return begun or self._broken(machine)

    def _broken(self, machine: Machine) -> bool:
        """Whether a machine of the right image has failed for good, although its host works.

        One with a monitor that is ready has not: what cannot be reached through the host may be for the host to mend.
        """
        if any(member.monitor is not None and member.monitor.ready for member in machine.members):
            return False
        failures = [member.failed for member in machine.members]
        return machine.surveyed and all(
            failed is not None and failed.reason == _GUEST and failed.attempts >= self._care.failure_threshold
            for failed in failures
        )

    def _replacing(self, due: Mapping[int, Machine], target: str, obstacle: str) -> frozenset[int]:
        """Return the machines that are replaced now: those that have begun, and as many more as may be unavailable."""
        chosen = {number for number, machine in due.items() if machine.replacing}
        waiting = sorted(due.keys() - chosen, key=lambda number: (_in_use(due[number]), number))
        for number in waiting:
            if not due[number].surveyed:
                continue  # nobody can destroy it
            other_image = digest(due[number].image) != digest(target)
            if other_image and (obstacle or not self._tried(target, chosen)):
                continue
            if self._dispensable(number, chosen) or self._alone(number, chosen, due):
                chosen.add(number)
        return frozenset(chosen)

    def _tried(self, target: str, chosen: set[int]) -> bool:
        """Whether machines may go for an image: it has shown that it works, or none is risked for it so far."""
        if digest(target) == digest(self._stable):
            return True
        made = [machine for machine in self._machines.values() if digest(machine.image) == digest(target)]
        if any(all(_answers(member) for member in machine.members) for machine in made):
            return True
        # Between the end of one and its new members, nothing but their absence tells of it.
        return not made and not chosen and len(self._ordinals) >= self._care.replicas

    def _alone(self, number: int, chosen: set[int], due: Mapping[int, Machine]) -> bool:
        """Whether a machine with which no service is lost may go, however many others are away.

        One at a time, and the next one when it is there again: if it does not come back, nor will others.
        """
        if _in_use(self._machines[number]) or chosen or len(self._ordinals) < self._care.replicas:
            return False
        others = [machine for other, machine in self._machines.items() if other != number and other not in due]
        return all(member.configuration for machine in others for member in machine.members)

    def _dispensable(self, number: int, chosen: set[int]) -> bool:
        """Whether a machine may go beside those that are chosen."""
        others = [machine for other, machine in self._machines.items() if other not in {number, *chosen}]
        ready = sum(_ready(machine) for machine in others)
        if self._surge:
            return ready >= self._care.replicas
        members = sum(len(machine.members) for other, machine in self._machines.items() if other != number)
        away = max(self._care.replicas - len(self._ordinals), 0) + members - ready
        return away == 0 or away + _ready(self._machines[number]) <= self._care.unavailable

    def _settled(self) -> str:
        """Return the image that all machines have and with which all members are ready; else the one before.

        With a surge, which goes then, the machines that were replaced have to be there again.
        """
        machines = self._machines.values()
        if self._surge and not self._ordinals.issuperset(range(self._care.replicas)):
            return self._stable
        if machines and all(
            digest(machine.image) == digest(self._wanted) and _ready(machine) == len(machine.members)
            for machine in machines
        ):
            return self._wanted
        return self._stable

    def _why_held(self, obstacle: str, *, automatic: bool) -> str:
        """Say what keeps machines from being replaced; empty: nothing does, but for those that have to be ready."""
        if not automatic:
            return (
                "This deletes their members' data, which are made again from data.source: set "
                "virtualMachine.replacement to Automatic if that is right"
            )
        return obstacle and f"Nothing more is deleted before this is mended: {obstacle}"

    def _condition(
        self, due: Mapping[int, Machine], replacing: frozenset[int], target: str, rejected: str, held: str
    ) -> Condition | None:
        if replacing:
            named = ", ".join(self._machines[number].name for number in sorted(replacing))
            left = len(due) - len(replacing)
            message = f"being replaced with machines of image {_short(target)}: {named}" + (
                f"; {left} more to come" if left else ""
            )
            return Condition("Progressing", TRUE, "Replacing", message)
        if rejected:
            message = (
                f"virtual machines of image {_short(rejected)} did not become ready, so image {_short(target)} is "
                "kept: correct the image, and change virtualMachine in the spec"
            )
            return Condition("Progressing", FALSE, "ReplacementRolledBack", message)
        if due and held:
            named = ", ".join(machine.name for machine in due.values())
            message = f"to be replaced with machines of image {_short(target)}: {named}. {held}"
            return Condition("Progressing", FALSE, "ReplacementHeld", message)
        if due:
            named = ", ".join(machine.name for machine in due.values())
            message = f"to be replaced when enough members are ready and their hosts are reached: {named}"
            return Condition("Progressing", TRUE, "Replacing", message)
        return None


def _machines(
    pool: Object, known: Iterable[Observation], surveys: Mapping[str, HostSurvey], wanted: str
) -> dict[int, Machine]:
    rows = {row["name"]: row for row in status(pool).get("virtualMachines") or ()}
    by_digest = {digest(image): image for image in (str(row.get("image") or "") for row in rows.values()) if image}
    by_digest |= {digest(image): image for image in _images(pool, wanted) if image}
    members: dict[int, list[Observation]] = defaultdict(list)
    for member in known:
        members[member.ordinal // jails(pool)].append(member)
    found = {}
    for number, those in sorted(members.items()):
        called = machine_name(name(pool), number)
        row = rows.get(called, {})
        host = next((member.host for member in those if member.host), "")
        survey = surveys.get(host)
        # A survey from before the last run may show a machine that has been made again since.
        seen = survey.own.get(called) if survey and not survey.stale else None
        image = by_digest.get(digest(seen.image), f"@{seen.image}") if seen and seen.image else row.get("image", "")
        found[number] = Machine(
            number=number,
            name=called,
            members=tuple(sorted(those, key=lambda member: member.ordinal)),
            host=host,
            image=image,
            surveyed=survey is not None and survey.reached,
            replacing=row.get("state") == REPLACING and any(member.draining_since for member in those),
        )
    return found


def _images(pool: Object, wanted: str) -> Iterable[str]:
    known: Mapping[str, Any] = status(pool)
    return (str(known.get("machineImage") or ""), str(known.get("rejectedMachineImage") or ""), wanted)


def _ready(machine: Machine) -> int:
    """Count the members that serve. One that served before a run on it failed still does while its monitor answers.

    One whose namespace may not use the pool any more has nothing to serve.
    """
    return sum(
        1
        for member in machine.members
        if _answers(member)
        and (member.reason == _READY or member.withdrawn or (member.failed is not None and member.served))
    )


def _answers(member: Observation) -> bool:
    return member.monitor is not None and member.monitor.ready and not member.insufficient


def _in_use(machine: Machine) -> bool:
    """Whether members of a machine serve, or are about to."""
    return any(_answers(member) and member.reason not in _DOES_NOT_WORK for member in machine.members)


def _short(image: str) -> str:
    """Return an image for people: its name and the first digits of its checksum."""
    called, _, checksum = image.rpartition("@")
    return f"{called}@{checksum[:12]}"
