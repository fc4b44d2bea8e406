# SPDX-License-Identifier: BSD-2-Clause
"""Inventories of runs for members in jails of virtual machines. Pure.

The entry `machine` is the host. Each virtual machine is an entry of its own, which is reached through the host. A
member's entry has the connection of its machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shai_operator.providers import ssh
from shai_operator.providers.interface import DataMode, Grounds
from shai_operator.providers.inventory import MACHINE, MEMBERS, member_settings, render
from shai_operator.reconcile.surveys import address, pool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from shai_operator.providers.interface import Host, Login, Member, MemberConfiguration
    from shai_operator.providers.machine_settings import MachineSettings
    from shai_operator.reconcile.surveys import VirtualMachine

PYTHON = "/usr/local/bin/python3"
"""The Python of hosts and of virtual machines, from packages."""
_MACHINES = "virtual_machines"
_KEY_VALUE_PACKAGE = "redis"


@dataclass(frozen=True)
class BhyveInventories:
    """Inventories for the roles of FreeBSD hosts, virtual machines and jails."""

    host: Host
    login: Login
    owner: str
    """The mark of this operator."""
    describe: Callable[[str], Mapping[str, Any]]
    """Returns the description of an image ``NAME@SHA512``, with this checksum."""
    templates: str
    """The directory with the templates of the first boot."""
    packages: Callable[[str], list[str]]
    """Returns the files of packages in an image of members."""

    @property
    def files(self) -> Mapping[str, str]:
        """Files for a run's directory."""
        return ssh.files(self.host, self.login)

    def provision(self, members: Sequence[Member], configuration: MemberConfiguration, directory: Path) -> str:
        """Return the inventory that makes machines, all from the image of the first one, and installs members."""
        settings = _settings(configuration.machines)
        machines = machines_of(members)
        image = self.describe(machines[0].image)
        module = settings.requires == "CapsicumModule"
        data = configuration.data
        # Whatever else the pool says, the operator itself has to get in.
        keys = list(dict.fromkeys([ssh.public_key(self.login), *settings.authorized_keys]))
        shared = {
            "bhyve_host_image": image,
            "bhyve_host_mirror": settings.mirror,
            "pool_vm_image": image,
            "pool_vm_cpus": settings.cpus,
            "pool_vm_memory_mebibytes": settings.memory_mebibytes,
            "pool_vm_disk_gibibytes": settings.disk_gibibytes,
            "pool_vm_gateway": settings.gateway,
            "pool_vm_nameservers": list(settings.nameservers),
            "pool_vm_authorized_keys": keys,
            "freebsd_guest_authorized_keys": keys,
            "pool_vm_firstboot_templates": self.templates,
            "freebsd_guest_packages": [_KEY_VALUE_PACKAGE] if configuration.key_value else [],
            "freebsd_guest_package_files": self.packages(configuration.image.path),
            "freebsd_guest_module": module,
            "jail_module": module,
            "jail_nameservers": list(settings.nameservers),
            "jail_gateway": settings.gateway if settings.subnet else "",
            "freebsd_member_image_source": configuration.image.path,
            "freebsd_member_scratch": str(directory),
            "freebsd_member_data_share": data is not None and data.mode is DataMode.SHARE,
            "freebsd_member_requires": settings.requires,
            **member_settings("freebsd_member", configuration, directory),
        }
        entries = {
            machine.name: {
                "pool_vm_address": _with_prefix(machine.address, settings, settings.addresses),
                "freebsd_guest_members": _all_addresses(machine, members, settings),
            }
            for machine in machines
        }
        own = {
            member.name: {"jail_address": _with_prefix(member.address, settings, settings.members)}
            for member in members
        }
        place = Grounds(members[0].pool, configuration.directory, settings)
        return self._write(members, place, directory, shared, machines=entries, own=own)

    def removal(self, members: Sequence[Member], place: Grounds, directory: Path) -> str:
        """Return the inventory that removes members, and destroys the machines that are condemned."""
        names = {machine.name for machine in machines_of(members)} | place.condemned
        machines = {
            name: {"pool_vm_delete": name in place.condemned, "pool_vm_pool": pool_of(name)} for name in sorted(names)
        }
        return self._write(members, place, directory, {}, machines=machines)

    def reading(
        self, member: Member, place: Grounds, *, files: Sequence[str], destination: Path, directory: Path
    ) -> str:
        """Return the inventory that reads files of a member's data."""
        wanted = {"freebsd_member_read_files": list(files), "freebsd_member_read_destination": str(destination)}
        return self._write([member], place, directory, wanted)

    def survey(self, machines: Sequence[VirtualMachine], settings: MachineSettings, directory: Path) -> str:
        """Return the inventory that looks at a host, and into machines."""
        entries = {
            machine.name: {"pool_vm_name": machine.name, **self._through(machine, directory)} for machine in machines
        }
        storage = dict([settings.storage])
        variables = {
            **self._connection(directory),
            "bhyve_host_storage": storage,
            "pool_vm_storage": storage,
            "pool_vm_known_hosts": str(directory / ssh.KNOWN_HOSTS),
        }
        return render(variables, {MACHINE: {MACHINE: {}}, _MACHINES: entries})

    def _connection(self, directory: Path) -> Mapping[str, str]:
        return ssh.variables(self.host, self.login, directory, PYTHON)

    def _through(self, machine: VirtualMachine, directory: Path) -> Mapping[str, str]:
        return ssh.through(self.host, self.login, directory, PYTHON, name=machine.name, address=machine.address)

    def _write(
        self,
        members: Sequence[Member],
        place: Grounds,
        directory: Path,
        shared: Mapping[str, Any],
        *,
        machines: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        own: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> str:
        settings = _settings(place.machines)
        same = {"storage": dict([settings.storage]), "uplink": settings.uplink, "pool": place.pool}
        same["bridge_address"] = _bridge_address(settings)
        variables = {
            **self._connection(directory),
            **{f"{role}_{name}": value for role in ("bhyve_host", "pool_vm") for name, value in same.items()},
            "pool_vm_owner": self.owner,
            "pool_vm_known_hosts": str(directory / ssh.KNOWN_HOSTS),
            "freebsd_member_pool_directory": place.directory,
            **shared,
        }
        known = {machine.name: self._through(machine, directory) for machine in machines_of(members)}
        entries = {
            name: {"pool_vm_name": name, **known.get(name, {}), **machines.get(name, {})}
            for name in sorted(known.keys() | machines.keys())
        }
        jails = {
            member.name: {**known[member.machine.name], **_jail(member, member.machine), **own.get(member.name, {})}
            for member in members
            if member.machine is not None
        }
        return render(variables, {MACHINE: {MACHINE: {}}, _MACHINES: entries, MEMBERS: jails})


def machines_of(members: Iterable[Member]) -> list[VirtualMachine]:
    """Return the machines of members, each once, by name."""
    found = {member.machine.name: member.machine for member in members if member.machine}
    return [machine for _, machine in sorted(found.items())]


def _jail(member: Member, machine: VirtualMachine) -> dict[str, str]:
    return {
        "jail_machine": machine.name,
        "jail_pool": member.pool,
        "jail_name": member.twin_of or member.name,
        "freebsd_member_jail": member.twin_of or member.name,
        "freebsd_member_pool": member.pool,
        "freebsd_member_name": member.name,
        "freebsd_member_address": member.address,
    }


def _all_addresses(machine: VirtualMachine, members: Sequence[Member], settings: MachineSettings) -> list[str]:
    """Return the addresses of all members that a machine can have, also of those that this run does not install."""
    number = next(member.ordinal for member in members if member.machine == machine) // settings.jails
    ordinals = range(number * settings.jails, (number + 1) * settings.jails)
    return [own for ordinal in ordinals if (own := address(settings.members, ordinal)) is not None]


def _settings(settings: MachineSettings | None) -> MachineSettings:
    if settings is None:
        raise ValueError("asked to work on virtual machines without their settings")
    return settings


def _bridge_address(settings: MachineSettings) -> str:
    """Return the host's address on a bridge without a way out: there the host is the router."""
    if settings.uplink or not settings.gateway:
        return ""
    return _with_prefix(settings.gateway, settings, settings.addresses)


def _with_prefix(address: str, settings: MachineSettings, network: str) -> str:
    return f"{address}/{ip_network(settings.subnet or network).prefixlen}"
