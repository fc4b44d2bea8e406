# SPDX-License-Identifier: BSD-2-Clause
"""Provider ``local``: members on this machine, installed by the same playbooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from shai_operator.providers import compiled
from shai_operator.providers.installation import PlaybookProvider
from shai_operator.providers.interface import Host
from shai_operator.providers.inventory import Connection, LinuxInventories
from shai_operator.providers.placement import place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.providers.interface import Placement, Pool
    from shai_operator.providers.inventory import Inventories

LOCAL_HOST = "local"
"""Name of the one host."""
_THIS_MACHINE = Connection(
    lambda _: {"ansible_connection": "local", "ansible_python_interpreter": compiled.__file__},
    python=sys.executable,
)


def local_host(max_members: int = 8) -> Host:
    """Return this machine as a host."""
    return Host(LOCAL_HOST, "127.0.0.1", max_members=max_members)


class LocalProvider(PlaybookProvider):
    """Installs members on this machine, up to the pool's ``max_members``."""

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        """Choose this machine, as far as it has room."""
        return place(pool, [local_host(pool.max_members)], ordinals, current)

    def inventories(self, host: Host) -> Inventories:
        """Return what writes the inventories for this machine."""
        return LinuxInventories(self.connection(host))

    def connection(self, host: Host) -> Connection:  # noqa: ARG002 - there is one host
        """Return an empty connection."""
        return _THIS_MACHINE
