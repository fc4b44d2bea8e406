# SPDX-License-Identifier: BSD-2-Clause
"""Inventories of runs. Pure.

Every text is marked as data. Otherwise a pool's author could have the operator evaluate a template, which could start
programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from shai_operator.providers.interface import DataMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from shai_operator.providers.interface import Member, MemberConfiguration

MACHINE = "machine"
"""The inventory's name for the host itself. Members' names end in a number, so no member has this name."""
AUTHORITY_CERTIFICATE = "authority.pem"
AUTHORITY_KEY = "authority.key"
"""Names of files in a run's directory."""


@dataclass(frozen=True)
class Connection:
    """The connection of a run to its host: Ansible's variables for a run's directory, and files for that directory."""

    variables: Callable[[Path], Mapping[str, str]]
    python: str
    """Interpreter on the host that has the package supervisor, for hosts without systemd."""
    files: Mapping[str, str] = field(default_factory=dict, repr=False)


class _Text(str):
    """A text that Ansible does not evaluate as a template."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes texts with Ansible's mark for data."""


_Dumper.add_representer(_Text, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def for_provision(
    connection: Connection, members: Sequence[Member], configuration: MemberConfiguration, directory: Path
) -> str:
    """Return the inventory that installs members."""
    data, key_value = configuration.data, configuration.key_value
    shared = {
        "linux_host_directory": configuration.directory,
        "linux_host_python": connection.python,
        "linux_host_key_value": key_value is not None,
        "linux_host_image_source": configuration.image.path,
        "linux_host_image_digest": configuration.image.digest,
        "linux_host_scratch": str(directory),
        "linux_member_image_digest": configuration.image.digest,
        "linux_member_port": configuration.monitor_port,
        "linux_member_data_source": data.source if data else "",
        "linux_member_data_link": data is not None and data.mode is DataMode.LINK,
        "linux_member_data_share": data is not None and data.mode is DataMode.SHARE,
        "linux_member_key_value": key_value is not None,
        "linux_member_key_value_open": key_value.open if key_value else "",
        "linux_member_key_value_seed": key_value.seed if key_value else "",
        "linux_member_variables": [{"name": name, "value": value} for name, value in configuration.variables],
        "linux_member_authority_certificate": str(directory / AUTHORITY_CERTIFICATE),
        "linux_member_authority_key": str(directory / AUTHORITY_KEY),
    }
    return _write(connection, members, configuration.directory, shared, directory)


def for_reading(
    connection: Connection,
    member: Member,
    pool_directory: str,
    *,
    files: Sequence[str],
    destination: Path,
    directory: Path,
) -> str:
    """Return the inventory that reads files of a member's data."""
    wanted = {"linux_member_read_files": list(files), "linux_member_read_destination": str(destination)}
    return _write(connection, [member], pool_directory, wanted, directory)


def for_removal(connection: Connection, members: Sequence[Member], pool_directory: str, directory: Path) -> str:
    """Return the inventory that removes members."""
    return _write(connection, members, pool_directory, {"linux_host_directory": pool_directory}, directory)


def _write(
    connection: Connection,
    members: Sequence[Member],
    pool_directory: str,
    shared: Mapping[str, Any],
    directory: Path,
) -> str:
    variables = {
        **connection.variables(directory),
        "linux_member_pool_directory": pool_directory,
        "linux_member_python": connection.python,
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
    tree = {
        "all": {"vars": variables, "children": {MACHINE: {"hosts": {MACHINE: {}}}, "members": {"hosts": hosts}}},
    }
    return yaml.dump(_as_data(tree), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _as_data(value: Any) -> Any:
    match value:
        case str() if value:  # Ansible reads a marked text that is empty as none
            return _Text(value)
        case dict():
            return {name: _as_data(item) for name, item in value.items()}
        case list():
            return [_as_data(item) for item in value]
    return value
