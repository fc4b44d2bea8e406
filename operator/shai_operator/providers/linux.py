# SPDX-License-Identifier: BSD-2-Clause
"""Provider ``linux``: members on Linux hosts that are reached by SSH, with a key and a known host key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.providers import ssh
from shai_operator.providers.installation import PlaybookProvider
from shai_operator.providers.inventory import Connection, LinuxInventories
from shai_operator.providers.placement import place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import Host, Placement, Pool
    from shai_operator.providers.inventory import Inventories
    from shai_operator.providers.playbooks import Playbooks

PYTHON = "/usr/bin/python3"
"""The Python of hosts, for which Debian's package supervisor is installed."""


class LinuxProvider(PlaybookProvider):
    """Installs members on the hosts that the pool lists."""

    def __init__(self, playbooks: Playbooks, authority: Identity, *, python: str = PYTHON) -> None:
        super().__init__(playbooks, authority)
        self._python = python

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose among the pool's hosts."""
        return place(pool, pool.hosts, ordinals, current)

    def inventories(self, host: Host) -> Inventories:
        """Return what writes the inventories for a host."""
        return LinuxInventories(self.connection(host))

    def connection(self, host: Host) -> Connection:
        """Return the connection to a host; ConfigurationError when a part of the login is not well-formed."""
        login = ssh.login(host)
        return Connection(
            lambda directory: ssh.variables(host, login, directory, PYTHON),
            python=self._python,
            files=ssh.files(host, login),
        )
