# SPDX-License-Identifier: BSD-2-Clause
"""Inventories of runs. Pure.

They are JSON, in which every text is marked as data. Otherwise a pool's author could have the operator evaluate a
template, which could start programs. A text marked in YAML would still become a number or a truth value if it looked
like one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from shai_operator.providers.interface import DataMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from shai_operator.providers.interface import Grounds, Member, MemberConfiguration

MACHINE = "machine"
"""The inventory's name for the host itself. Members' names end in a number, so no member has this name."""
MEMBERS = "members"
"""The group of members."""
AUTHORITY_CERTIFICATE = "authority.pem"
AUTHORITY_KEY = "authority.key"
"""Names of files in a run's directory."""
_UNSAFE = "__ansible_unsafe"
"""Ansible's mark, in JSON, for a text that is not a template."""


@dataclass(frozen=True)
class Connection:
    """The connection of a run to its host: Ansible's variables for a run's directory, and files for that directory."""

    variables: Callable[[Path], Mapping[str, str]]
    python: str
    """Interpreter on the host that has the package supervisor, for hosts without systemd."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)


class Inventories(Protocol):
    """Writes the inventories of runs on one host."""

    @property
    def files(self) -> Mapping[str, str]:
        """Files for a run's directory."""

    def provision(self, members: Sequence[Member], configuration: MemberConfiguration, directory: Path) -> str:
        """Return the inventory that installs members; ``directory`` is the run's."""

    def removal(self, members: Sequence[Member], place: Grounds, directory: Path) -> str:
        """Return the inventory that removes members."""

    def reading(
        self, member: Member, place: Grounds, *, files: Sequence[str], destination: Path, directory: Path
    ) -> str:
        """Return the inventory that reads files of a member's data."""


class LinuxInventories:
    """Inventories for the roles of Linux hosts."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.files = connection.files

    def provision(self, members: Sequence[Member], configuration: MemberConfiguration, directory: Path) -> str:
        """Return the inventory that installs members."""
        data = configuration.data
        shared = {
            "linux_host_directory": configuration.directory,
            "linux_host_python": self._connection.python,
            "linux_host_key_value": configuration.key_value is not None,
            "linux_host_image_source": configuration.image.path,
            "linux_host_image_digest": configuration.image.digest,
            "linux_host_scratch": str(directory),
            "linux_member_data_link": data is not None and data.mode is DataMode.LINK,
            "linux_member_data_share": data is not None and data.mode is DataMode.SHARE,
            **member_settings("linux_member", configuration, directory),
        }
        return self._write(members, configuration.directory, shared, directory)

    def reading(
        self, member: Member, place: Grounds, *, files: Sequence[str], destination: Path, directory: Path
    ) -> str:
        """Return the inventory that reads files of a member's data."""
        wanted = {"linux_member_read_files": list(files), "linux_member_read_destination": str(destination)}
        return self._write([member], place.directory, wanted, directory)

    def removal(self, members: Sequence[Member], place: Grounds, directory: Path) -> str:
        """Return the inventory that removes members."""
        return self._write(members, place.directory, {"linux_host_directory": place.directory}, directory)

    def _write(self, members: Sequence[Member], pool_directory: str, shared: Mapping[str, Any], directory: Path) -> str:
        variables = {
            **self._connection.variables(directory),
            "linux_member_pool_directory": pool_directory,
            "linux_member_python": self._connection.python,
            **shared,
        }
        hosts = {
            member.name: {
                "linux_member_pool": member.pool,
                "linux_member_name": member.name,
                "linux_member_address": member.address,
            }
            for member in members
        }
        return render(variables, {MACHINE: {MACHINE: {}}, MEMBERS: hosts})


def member_settings(role: str, configuration: MemberConfiguration, directory: Path) -> dict[str, Any]:
    """Return the settings that all roles of members have, with the role's name as prefix."""
    data, key_value = configuration.data, configuration.key_value
    settings = {
        "image_digest": configuration.image.digest,
        "port": configuration.monitor_port,
        "data_source": data.source if data else "",
        "key_value": key_value is not None,
        "key_value_open": key_value.open if key_value else "",
        "key_value_seed": key_value.seed if key_value else "",
        "variables": [{"name": name, "value": value} for name, value in configuration.variables],
        "runtimes": [{"name": name, "paths": list(paths)} for name, paths in configuration.runtimes],
        "sources": list(configuration.sources),
        "authority_certificate": str(directory / AUTHORITY_CERTIFICATE),
        "authority_key": str(directory / AUTHORITY_KEY),
    }
    return {f"{role}_{name}": value for name, value in settings.items()}


def render(variables: Mapping[str, Any], groups: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return an inventory: the variables of all entries, and the groups' entries with their own ones."""
    children = {group: {"hosts": entries} for group, entries in groups.items()}
    return json.dumps(_as_data({"all": {"vars": variables, "children": children}}), indent=1)


def _as_data(value: Any) -> Any:
    match value:
        case str():
            return {_UNSAFE: value}
        case Mapping():
            return {name: _as_data(item) for name, item in value.items()}
        case list() | tuple():
            return [_as_data(item) for item in value]
    return value
