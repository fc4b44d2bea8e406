# SPDX-License-Identifier: BSD-2-Clause
"""Virtual machines of pools, and what a survey finds of them on a host.

Machine k of a pool holds the members with the ordinals k * jails to (k + 1) * jails - 1. All of them are on its host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

RUNNING, STOPPED, BROKEN = "Running", "Stopped", "Broken"


@dataclass(frozen=True)
class VirtualMachine:
    """A virtual machine of a pool."""

    name: str
    address: str
    image: str = ""
    """What it is, or will be, made from: a name, or a name, an @ and the SHA-512; empty where it does not matter."""


@dataclass(frozen=True)
class SurveyedMachine:
    """A virtual machine that a survey has found, of any pool."""

    name: str
    pool: str
    own: bool
    """Whether it carries the mark of this operator."""
    state: str
    """Running, Stopped or Broken."""
    image: str = ""
    jails: tuple[str, ...] = ()
    """The members' jails that run in it, as far as it could be asked."""
    version: str = ""
    """Its system and release, as far as it could be asked."""
    message: str = ""


@dataclass(frozen=True)
class HostSurvey:
    """The last survey of a host. If it failed, the figures are those of the one before."""

    at: datetime
    free_memory_mebibytes: int = 0
    version: str = ""
    machines: tuple[SurveyedMachine, ...] = ()
    reason: str = ""
    """Why the host could not be surveyed, in a word for programs; empty: it was."""
    message: str = ""
    stale: bool = False
    """Whether something has been done on the host since."""
    own: dict[str, SurveyedMachine] = field(init=False, compare=False, repr=False)
    """The machines with this operator's mark, by name."""

    def __post_init__(self) -> None:
        """Index the machines."""
        object.__setattr__(self, "own", {machine.name: machine for machine in self.machines if machine.own})

    @property
    def reached(self) -> bool:
        """Whether the survey succeeded."""
        return not self.reason


def machine_name(pool: str, number: int) -> str:
    """Return the name of a pool's machine."""
    return f"{pool}-vm-{number}"


def pool_of(machine: str) -> str:
    """Return the name of a machine's pool."""
    return machine.rpartition("-vm-")[0]


def address(network: str, index: int) -> str | None:
    """Return the (index+1)th address of a range that a machine can have; None when it has fewer."""
    whole = ip_network(network)
    first, last = usable(network)
    return str(whole[first + index]) if first + index < last else None


def usable(network: str) -> tuple[int, int]:
    """Return the indices of a range's first address for machines and of the one behind the last.

    The first and the last address of an IPv4 range, and the first of an IPv6 range, belong to no machine.
    """
    whole = ip_network(network)
    first = 1 if whole.prefixlen < whole.max_prefixlen - 1 else 0
    return first, whole.num_addresses - first * (whole.version == 4)  # noqa: PLR2004 - the protocol's name
