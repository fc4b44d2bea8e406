# SPDX-License-Identifier: BSD-2-Clause
"""Places members on hosts and gives them addresses. Pure.

A member keeps its host, because its data are there. No member is moved to another host.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from shai_operator.providers.interface import Failure, Member, Placement, Reason
from shai_operator.reconcile.counts import count
from shai_operator.reconcile.surveys import address, usable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.providers.interface import Host, Pool


def place(pool: Pool, hosts: Sequence[Host], ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
    """Place the ordinals on the hosts; see `interface.Provider.place`."""
    listed = {host.name for host in hosts}
    kept = {ordinal: current[ordinal] for ordinal in ordinals if current.get(ordinal) in listed}
    taken = Counter(kept.values())
    chosen = dict(kept)
    for ordinal in ordinals:
        if ordinal in chosen:
            continue
        free = [host for host in hosts if taken[host.name] < host.max_members]
        if not free:
            break
        most = max(free, key=lambda host: host.max_members - taken[host.name])
        chosen[ordinal] = most.name
        taken[most.name] += 1
    return _addressed(pool, hosts, ordinals, chosen)


def _addressed(pool: Pool, hosts: Sequence[Host], ordinals: Sequence[int], chosen: Mapping[int, str]) -> Placement:
    addresses = {ordinal: address(pool.addresses, ordinal) for ordinal in chosen}
    members = tuple(
        Member(pool.name, f"{pool.name}-{ordinal}", ordinal, chosen[ordinal], own)
        for ordinal in ordinals
        if (own := addresses.get(ordinal)) is not None
    )
    if len(members) == len(ordinals):
        return Placement(members)
    if len(chosen) == len(ordinals):
        return Placement(members, too_few_addresses(pool.addresses, max(ordinals)))
    return Placement(members, _too_few_hosts(hosts, len(ordinals), len(members)))


def _too_few_hosts(hosts: Sequence[Host], wanted: int, fit: int) -> Failure:
    room = ", ".join(f"{host.name}: {host.max_members}" for host in hosts) or "there is none"
    return Failure(
        Reason.TOO_FEW_HOSTS,
        f"{count(wanted, 'member', ('is wanted', 'are wanted'))}, and the hosts have room for {fit} ({room}): "
        "add a host, raise maxMembers, or lower replicas",
    )


def too_few_addresses(network: str, highest: int) -> Failure:
    """Say that a range has no address for an ordinal."""
    first, last = usable(network)
    return Failure(
        Reason.TOO_FEW_HOSTS,
        f"the range {network} has addresses for {last - first}, ordinal {highest} gets none: "
        "choose a larger range, or lower replicas",
    )
