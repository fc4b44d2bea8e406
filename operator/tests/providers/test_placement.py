# SPDX-License-Identifier: BSD-2-Clause
"""Placement: the hosts of old and new members, and the message for members without one."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.providers.interface import Host, Pool, Reason
from shai_operator.providers.placement import place

A, B = Host("a", "192.0.2.1", max_members=2), Host("b", "192.0.2.2", max_members=1)
POOL = Pool("web", "10.0.0.0/24", (A, B))


@pytest.mark.parametrize(
    ("ordinals", "current", "expected"),
    [
        pytest.param([0, 1, 2], {}, {0: "a", 1: "a", 2: "b"}, id="most room first, then in the order listed"),
        pytest.param([0, 1], {0: "b"}, {0: "b", 1: "a"}, id="a member keeps its host"),
        pytest.param(
            [0, 1, 2], {0: "b", 1: "b"}, {0: "b", 1: "b", 2: "a"}, id="also where there is room for fewer now"
        ),
        pytest.param([0], {0: "gone"}, {0: "a"}, id="a host that is not listed keeps nobody"),
        pytest.param([2, 5], {5: "b"}, {2: "a", 5: "b"}, id="ordinals may have gaps"),
        pytest.param([], {0: "a"}, {}, id="no members"),
    ],
)
def test_who_goes_where(ordinals: list[int], current: dict[int, str], expected: dict[int, str]) -> None:
    placement = place(POOL, POOL.hosts, ordinals, current)
    assert placement.failure is None
    assert {member.ordinal: member.host for member in placement.members} == expected


def test_names_and_addresses_follow_from_the_ordinal() -> None:
    (member,) = place(POOL, POOL.hosts, [4], {}).members
    assert (member.name, member.address, member.pool) == ("web-4", "10.0.0.5", "web")


@pytest.mark.parametrize(
    ("pool", "ordinals", "fit", "says"),
    [
        pytest.param(POOL, range(5), 3, "5 members are wanted, and the hosts have room for 3 (a: 2, b: 1)", id="hosts"),
        pytest.param(
            Pool("web", "10.0.0.0/24"),
            range(1),
            0,
            "1 member is wanted, and the hosts have room for 0 (there is none)",
            id="no hosts",
        ),
        pytest.param(
            Pool("web", "10.0.0.0/30", (A, B)),
            range(3),
            2,
            "has addresses for 2, ordinal 2",
            id="addresses",
        ),
        pytest.param(
            Pool("web", "10.0.0.7/32", (A, B)),
            range(2),
            1,
            "addresses for 1, ordinal 1",
            id="one address",
        ),
    ],
)
def test_what_does_not_fit_is_said(pool: Pool, ordinals: range, fit: int, says: str) -> None:
    placement = place(pool, pool.hosts, ordinals, {})
    assert len(placement.members) == fit
    assert placement.failure is not None
    assert placement.failure.reason is Reason.TOO_FEW_HOSTS
    assert says in placement.failure.message


HOSTS = st.lists(st.integers(0, 4), max_size=4).map(
    lambda rooms: tuple(Host(f"h{i}", f"192.0.2.{i}", max_members=room) for i, room in enumerate(rooms))
)


@given(
    hosts=HOSTS,
    ordinals=st.lists(st.integers(0, 20), unique=True, max_size=12),
    current=st.dictionaries(st.integers(0, 20), st.sampled_from(["h0", "h1", "h2", "elsewhere"])),
    network=st.sampled_from(["127.0.10.0/24", "10.1.0.0/29", "10.1.0.0/31", "fd00::/64", "fd00::/126", "fd00::8/128"]),
)
def test_always(hosts: tuple[Host, ...], ordinals: list[int], current: dict[int, str], network: str) -> None:
    placement = place(Pool("p", network, hosts), hosts, ordinals, current)
    members = placement.members
    assert (len(members) == len(ordinals)) == (placement.failure is None)
    assert len({member.address for member in members}) == len(members)
    assert all(ip_address(member.address) in ip_network(network) for member in members)
    names = {host.name for host in hosts}
    for member in members:
        if current.get(member.ordinal) in names:
            assert member.host == current[member.ordinal]
    for host in hosts:
        newcomers = [
            member for member in members if member.host == host.name and current.get(member.ordinal) != host.name
        ]
        present = sum(member.host == host.name for member in members)
        assert not newcomers or present <= host.max_members
