# SPDX-License-Identifier: BSD-2-Clause
"""A simulated world for a pool of jails in virtual machines on two hosts. Placement is the provider's own.

It fails the test when a virtual machine is made that may run elsewhere, or when members are installed in none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shai_operator.control import poolspec
from shai_operator.providers.machine_placement import place
from shai_operator.reconcile import bridges, enforcement, pools
from shai_operator.reconcile.machines import OF_HOSTS
from shai_operator.reconcile.members import (
    Failure,
    ForgetMembers,
    Monitor,
    Observation,
    Place,
    ProvisionMembers,
    RemoveMembers,
)
from shai_operator.reconcile.orphans import RemoveOrphans
from shai_operator.reconcile.surveys import HostSurvey, SurveyedMachine, machine_name
from tests.reconcile.pool_world import World

if TYPE_CHECKING:
    from shai_operator.reconcile.pools import Observed

MODULE = "capsicum+shai.ko"
OLD, NEW = "freebsd-14.4-amd64@" + "a" * 128, "freebsd-15.1-amd64@" + "b" * 128
JAILS = 2


def spec(**changes: Any) -> dict[str, Any]:
    """Return the settings of a pool with machines."""
    return {
        "provider": "bhyve",
        "jails": JAILS,
        "hosts": [{"name": name, "address": f"192.0.2.{name[1:]}", "maxMembers": 8} for name in ("h1", "h2")],
        "virtualMachine": {
            "image": "freebsd-14.4-amd64",
            "memoryMebibytes": 1000,
            "storage": {"dataset": "zroot/shai"},
            "replacement": "Automatic",
        },
        "network": {"addresses": "10.0.0.0/24", "machines": "10.1.0.0/24"},
        "healing": {"failureThreshold": 2},
        **changes,
    }


@dataclass
class VirtualMachine:
    """A virtual machine that exists."""

    host: str
    image: str
    pool: str = "default"
    foreign: bool = False
    """Whether it has the mark of another operator."""


class MachineWorld(World):
    """One pool named ``default`` of jails in virtual machines."""

    def __init__(self, replicas: int = 4, **changes: Any) -> None:
        super().__init__(replicas, **spec(**changes))
        self.vms: dict[str, VirtualMachine] = {}
        self.image = OLD
        self.bad: set[str] = set()
        """Images whose machines nobody can reach."""
        self.broken: set[str] = set()
        """Machines that nobody can reach, although they run."""
        self.broken_by = "GuestUnreachable"
        """The reason of their members' failures."""
        self.locked: set[str] = set()
        """Machines into which no run gets, although their monitors answer."""
        self.missing: dict[str, str] = {}
        """Why machines cannot be made from an image, by image."""
        self.dark: set[str] = set()
        """Hosts that nobody can reach."""
        self._stale: dict[str, int] = {}
        """For how many steps the survey of a host is stale."""
        self._before: dict[str, tuple[SurveyedMachine, ...]] = {}
        """The machines in a stale survey."""
        self.restarted = False
        """Whether the operator has forgotten what dark hosts had."""
        self.backends: dict[str, str] = {}
        self.troubles: dict[str, Failure] = {}
        self.healed: dict[str, int] = {}
        self.jails: dict[str, tuple[str, ...]] = {}
        """Jails beside the members', by machine."""

    def look(self, most: int = 10_000) -> None:
        """Reconcile. Surveys show what was done on a host only two steps later; until then they are stale."""
        super().look(most)
        for host in list(self._stale):
            self._stale[host] -= 1
            if not self._stale[host]:
                del self._stale[host], self._before[host]

    def upgrade(self, image: str = NEW, **changes: Any) -> None:
        """Set the image of virtual machines."""
        self.image = image
        wanted = {**self.pool["spec"]["virtualMachine"], "image": image.partition("@")[0], **changes}
        self.change("JailPool", "default", virtualMachine=wanted)

    def surveys(self) -> dict[str, HostSurvey]:
        """Return the survey of each host that is not gone."""
        found = {}
        for host in self.pool["spec"]["hosts"]:
            if host.get("state") != "Gone":
                dark = host["name"] in self.dark
                found[host["name"]] = HostSurvey(
                    self.now,
                    4000,
                    "FreeBSD 14.4-RELEASE amd64",
                    self._before.get(host["name"], self._surveyed(host["name"])),
                    stale=host["name"] in self._stale,
                    reason="HostUnreachable" if dark else "",
                    message=f"host {host['name']} does not answer" if dark else "",
                )
        return found

    def _surveyed(self, host: str) -> tuple[SurveyedMachine, ...]:
        return tuple(
            SurveyedMachine(
                called,
                vm.pool,
                own=bool(vm.pool) and not vm.foreign,
                state="Running",
                image=vm.image.partition("@")[2],
                jails=(*self._members_in(called), *self.jails.get(called, ())),
            )
            for called, vm in sorted(self.vms.items())
            if vm.host == host and not (host in self.dark and self.restarted)
        )

    def _members_in(self, machine: str) -> tuple[str, ...]:
        return tuple(called for called in self.machines if machine_of(called) == machine)

    def observation(self, called: str, row: Observation) -> Observation:
        seen = super().observation(called, row)
        vm = self.vms.get(machine_of(called))
        dead = vm is None or vm.host in self.dark or machine_of(called) in self.broken
        monitor: Monitor | None = seen.monitor
        if monitor is not None:
            monitor = None if dead else replace(monitor, backend=self.backends.get(called, MODULE))
        failed = self.troubles.get(called)
        healed = self.healed.get(called, 0)
        return replace(seen, monitor=monitor, failed=failed, healed=healed, failures=1000 if dead else 0)

    def exists(self, called: str) -> bool:
        return called in self.machines or called in self.troubles

    def failing(self, member: Observation) -> Observation:
        return member

    def observed(self) -> Observed:
        base = super().observed()
        rows = enforcement.judged(self.pool, base.members.values())
        surveys = self.surveys()
        replacements = pools.replacements(self.pool, rows, surveys, self.image)
        chosen = pools.ordinals(self.pool, rows, replacements)
        settings = poolspec.existing_machines(self.pool)
        current = {row.ordinal: row.host for row in rows.values() if row.host}
        placed = place(poolspec.pool(self.pool, surveys), settings, chosen, current)
        places = {one.ordinal: Place(one.name, one.ordinal, one.host, one.address) for one in placed.members}
        conflict = bridges.conflict(self.pool, self.known)
        return replace(
            base,
            configuration_error=("BridgeConflict", conflict) if conflict else None,
            members=rows,
            places=places,
            unplaced=(placed.failure.reason, placed.failure.message) if placed.failure else None,
            configurations={} if conflict else {one.name: self.digest for one in places.values()},
            surveys=surveys,
            replacements=replacements,
        )

    def carry_out_on_members(self, action: Any) -> None:
        if isinstance(action, ProvisionMembers | RemoveMembers | RemoveOrphans):
            self._before.setdefault(action.host, self._surveyed(action.host))
            self._stale[action.host] = 2
        match action:
            case ProvisionMembers():
                for one in action.members:
                    self._provision(action, one)
            case RemoveMembers():
                self._remove(action)
            case RemoveOrphans():
                self._remove_orphans(action)
            case ForgetMembers():
                for one in action.members:
                    self._forget(one.name)
            case _:
                super().carry_out_on_members(action)

    def _remove(self, action: RemoveMembers) -> None:
        if action.host in self.dark:
            for one in action.members:
                self._fail(one.name, "HostUnreachable", removal=True)
            return
        for one in action.members:
            self._forget(one.name)
        for number in action.condemned:
            self.vms.pop(machine_name("default", number), None)
            self.locked.discard(machine_name("default", number))

    def _remove_orphans(self, action: RemoveOrphans) -> None:
        for called in action.machines:
            del self.vms[called]
        for machine, jail in action.jails:
            self.jails[machine] = tuple(left for left in self.jails[machine] if left != jail)

    def _provision(self, action: ProvisionMembers, one: Place) -> None:
        called = machine_of(one.name)
        if action.host in self.dark:
            self._fail(one.name, "HostUnreachable")
            return
        if called not in self.vms and one.image in self.missing:
            self._fail(one.name, self.missing[one.image])
            return
        vm = self.vms.setdefault(called, VirtualMachine(action.host, one.image))
        assert vm.host == action.host, f"{called} runs on {vm.host} and is made on {action.host}"
        if vm.image in self.bad or called in self.broken | self.locked:
            self._fail(one.name, self.broken_by)
            return
        self.troubles.pop(one.name, None)
        self.healed[one.name] = 0
        super().carry_out_on_members(replace(action, members=(one,)))

    def _fail(self, called: str, reason: str, *, removal: bool = False) -> None:
        before = self.troubles.get(called)
        attempts = before.attempts + 1 if before and before.reason == reason else 1
        self.troubles[called] = Failure(reason, f"{called}: {reason}", self.now, attempts, removal=removal)
        if reason not in OF_HOSTS and not removal:
            self.healed[called] = self.healed.get(called, 0) + 1

    def _forget(self, called: str) -> None:
        for left in (self.machines, self.troubles, self.healed):
            left.pop(called, None)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the rows of virtual machines in the status, by name."""
        return {row["name"]: row for row in self.status.get("virtualMachines", ())}

    def images(self) -> dict[str, str]:
        """Return the image of each machine that exists."""
        return {called: vm.image for called, vm in sorted(self.vms.items())}


def ready(**changes: Any) -> MachineWorld:
    """Return a world whose pool is ready; what happened until then is forgotten."""
    world = MachineWorld(**changes)
    world.settle()
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady"), world.status
    world.trail.clear()
    world.events.clear()
    return world


def machine_of(member: str) -> str:
    """Return the machine of a member."""
    return machine_name("default", int(member.rpartition("-")[2]) // JAILS)
