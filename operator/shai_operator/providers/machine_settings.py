# SPDX-License-Identifier: BSD-2-Clause
"""The settings of a pool's virtual machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class MachineSettings:
    """All settings of virtual machines that are the same in a pool."""

    addresses: str
    """CIDR; machine k gets the (k+1)th address in it that a machine can have."""
    jails: int
    """Members in each: the member with ordinal i is in machine i // jails."""
    members: str
    """CIDR of the members' addresses."""
    memory_mebibytes: int
    gateway: str = ""
    """The router's address, which no machine gets; empty: none."""
    cpus: int = 2
    disk_gibibytes: int = 20
    storage: tuple[str, str] = ("directory", "/var/shai-vms")
    """``dataset`` or ``directory``, and its name on the hosts."""
    subnet: str = ""
    """CIDR of the network that has the addresses of machines and members; empty: they are networks of their own."""
    nameservers: tuple[str, ...] = ()
    uplink: str = ""
    """The hosts' interface to which machines are bridged; empty: none."""
    requires: str = "CapsicumModule"
    """The least enforcement of members."""
    checksum: str = ""
    """SHA-512 of the image in hex; empty: the recorded one."""
    mirror: str = ""
    authorized_keys: tuple[str, ...] = ()
    """Public keys that may log in beside the host's own."""

    def installed(self) -> dict[str, Any]:
        """Return the settings that an installation brings up to date in a machine that exists."""
        content = {name: value for name, value in asdict(self).items() if name not in {"checksum", "mirror"}}
        if not self.authorized_keys:
            # Pools from before the field are up to date.
            del content["authorized_keys"]
        return content
