# SPDX-License-Identifier: BSD-2-Clause
"""Places virtual machines on hosts, and with them their members. Pure.

A machine keeps its host while the pool lists the host, even if nobody can reach it: as long as it may still run there,
a second one of its name and address must not be made elsewhere. It loses its host only when the spec says that the
host is gone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from shai_operator.providers.interface import Failure, Member, Placement, Reason
from shai_operator.providers.placement import too_few_addresses
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.surveys import RUNNING, VirtualMachine, address, machine_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.providers.interface import Host, Pool
    from shai_operator.providers.machine_settings import MachineSettings


def place(pool: Pool, machines: MachineSettings, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
    """Place the ordinals' machines on the pool's hosts; see `interface.Provider.place`.

    A new machine goes to the host that has the fewest of this pool, among those with room and enough free memory; among
    equals, to the one with the most free memory.
    """
    wanted = sorted({ordinal // machines.jails for ordinal in ordinals})
    choice = _Choice(pool, machines, current, frozenset(wanted))
    choice.keep()
    for number in wanted:
        choice.choose(number)
    members, failure = [], choice.failure()
    for ordinal in ordinals:
        number = ordinal // machines.jails
        own, its = address(pool.addresses, ordinal), address(machines.addresses, number)
        if own is None or its is None:
            failure = failure or too_few_addresses(pool.addresses if own is None else machines.addresses, ordinal)
        elif its == machines.gateway:
            failure = failure or _taken_by_gateway(pool, machines, number)
        elif number in choice.chosen:
            machine = VirtualMachine(machine_name(pool.name, number), its)
            host = choice.chosen[number]
            members.append(Member(pool.name, f"{pool.name}-{ordinal}", ordinal, host, own, machine))
    return Placement(tuple(members), failure)


class _Choice:
    """The hosts of machines, as far as they are chosen."""

    def __init__(
        self, pool: Pool, machines: MachineSettings, current: Mapping[int, str], wanted: frozenset[int]
    ) -> None:
        self._pool = pool
        self._wanted = wanted
        self._machines = machines
        self._hosts = {host.name: host for host in pool.hosts if not host.gone}
        self._gone = {host.name for host in pool.hosts if host.gone}
        self._current: dict[int, set[str]] = defaultdict(set)
        for ordinal, host in current.items():
            if host not in self._gone:
                self._current[ordinal // machines.jails].add(host)
        for listed in self._hosts.values():
            for number in self._found_on(listed):
                self._current[number].add(listed.name)
        self._held: list[str] = []
        """Why machines have no host that they could have."""
        self._unplaced = 0
        self.chosen: dict[int, str] = {}

    def keep(self) -> None:
        """Keep the hosts on which machines are, or may be, including those of machines that are to be removed."""
        for number, hosts in sorted(self._current.items()):
            problem = self._doubt(number, hosts)
            if not problem:
                (self.chosen[number],) = hosts
            elif number in self._wanted:
                self._held.append(problem)

    def _doubt(self, number: int, hosts: set[str]) -> str:
        """Say why it is not known where a machine runs; empty: it is."""
        name = machine_name(self._pool.name, number)
        if len(hosts) > 1:
            return (
                f"virtual machine {name} is on the hosts {' and '.join(sorted(hosts))}: only one of them can be right; "
                "destroy the other one there, by hand"
            )
        unlisted = hosts - self._hosts.keys()
        if unlisted:
            return (
                f"virtual machine {name} may still run on host {min(unlisted)}, which is no longer in spec.hosts: list "
                "it again, with state: Gone if it is switched off for good"
            )
        return ""

    def choose(self, number: int) -> None:
        """Choose a host for a machine that is on none."""
        if number in self.chosen or self._current.get(number):
            return
        candidates = [host for host in self._hosts.values() if not self._objection(host)]
        if not candidates or self._unsurveyed():
            self._unplaced += 1
            return
        taken = Counter(self.chosen.values())
        best = min(candidates, key=lambda host: (taken[host.name], -self._free(host)))
        self.chosen[number] = best.name

    def failure(self) -> Failure | None:
        """Say why machines have no host."""
        if self._held:
            return Failure(Reason.HOST_UNREACHABLE, "; ".join(self._held))
        if not self._unplaced:
            return None
        unsurveyed = self._unsurveyed()
        if unsurveyed:
            reasons = "; ".join(f"{host.name}: {self._unknown(host)}" for host in unsurveyed)
            return Failure(
                Reason.SURVEYING,
                f"no virtual machine is made before all hosts have been looked at ({reasons}): wait, make the host "
                "reachable, or take it off spec.hosts",
            )
        wanted = count(self._unplaced, "virtual machine", ("has no host", "have no host"))
        reasons = "; ".join(f"{host.name}: {self._objection(host)}" for host in self._hosts.values()) or "there is none"
        return Failure(Reason.TOO_FEW_HOSTS, f"{wanted} ({reasons}): add a host, raise maxMembers, or lower replicas")

    def _found_on(self, host: Host) -> set[int]:
        """Return the numbers of this pool's machines that a survey found on a host."""
        prefix = machine_name(self._pool.name, 0)[:-1]
        names = [machine.name for machine in (host.survey.machines if host.survey else ()) if machine.own]
        ends = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        return {int(end) for end in ends if end.isascii() and end.isdecimal()}

    def _unsurveyed(self) -> list[Host]:
        """Return the hosts that may have machines of which nothing is known.

        The status knows where machines were made. Without it, as after a restore from a backup, a machine may be on
        each host that has not been looked at since.
        """
        return [
            host for host in self._hosts.values() if not host.known and (host.survey is None or not host.survey.reached)
        ]

    def _unknown(self, host: Host) -> str:
        return host.survey.message if host.survey else "not looked at yet"

    def _objection(self, host: Host) -> str:
        """Say why a host takes no more machines; empty: it takes one."""
        if host.survey is None or not host.survey.reached:
            return self._unknown(host)
        room = host.max_members // self._machines.jails
        if Counter(self.chosen.values())[host.name] >= room:
            return f"has room for {count(room, 'virtual machine')} (maxMembers {host.max_members})"
        free = self._free(host)
        if free < self._machines.memory_mebibytes:
            still = "" if free == host.survey.free_memory_mebibytes else " when all that are to be there run"
            needs = self._machines.memory_mebibytes
            return f"has {max(free, 0)} MiB of free memory{still}, and a virtual machine needs {needs}"
        return ""

    def _free(self, host: Host) -> int:
        """Return a host's free memory, in MiB, when all machines that are to be there run, of other pools, too."""
        if host.survey is None:
            return 0
        running = {name for name, machine in host.survey.own.items() if machine.state == RUNNING}
        here = [number for number, where in self.chosen.items() if where == host.name]
        starting = [number for number in here if machine_name(self._pool.name, number) not in running]
        others = sum(mebibytes for name, mebibytes in host.promised if name not in running)
        return host.survey.free_memory_mebibytes - len(starting) * self._machines.memory_mebibytes - others


def _taken_by_gateway(pool: Pool, machines: MachineSettings, number: int) -> Failure:
    return Failure(
        Reason.TOO_FEW_HOSTS,
        f"network.gateway {machines.gateway} is the address of virtual machine {machine_name(pool.name, number)}: "
        "choose an address behind those of all virtual machines",
    )
