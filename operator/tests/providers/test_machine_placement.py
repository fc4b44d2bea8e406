# SPDX-License-Identifier: BSD-2-Clause
"""Placement of virtual machines: memory, spreading, and that no machine can ever run twice."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.providers.interface import Host, Pool, Reason
from shai_operator.providers.machine_placement import place
from shai_operator.providers.machine_settings import MachineSettings
from shai_operator.reconcile.surveys import HostSurvey, SurveyedMachine

MACHINES = MachineSettings("10.1.0.0/24", jails=2, members="10.0.0.0/24", memory_mebibytes=1000, gateway="10.1.0.254")


def machine(name: str, *, own: bool = True, state: str = "Running") -> SurveyedMachine:
    return SurveyedMachine(name, name.rpartition("-vm-")[0], own, state)


def host(
    name: str, free: int = 5000, *found: SurveyedMachine, most: int = 8, reason: str = "", known: bool = True
) -> Host:
    survey = HostSurvey(datetime.now(UTC), free, machines=found, reason=reason, message=f"{name}: {reason}")
    return Host(name, f"192.0.2.{ord(name[0])}", max_members=most, known=known, survey=survey)


def gone(one: Host) -> Host:
    return replace(one, gone=True)


def pool(*hosts: Host) -> Pool:
    return Pool("web", "10.0.0.0/24", hosts, machines=MACHINES)


DARK = "HostUnreachable"
UNKNOWN = Host("c", "192.0.2.3")

OTHERS = (("beside-vm-0", 1000), ("beside-vm-1", 1500))
CHOICES = {
    "machines are spread before they share a host": ([host("a", 9000), host("b", 4000)], range(8), {}, "abab"),
    "the most free memory among equals": ([host("a", 3000), host("b", 9000)], range(2), {}, "b"),
    "not where memory lacks": ([host("a", 999), host("b", 1000)], range(2), {}, "b"),
    "memory counts for machines that are still to come": ([host("a", 2500), host("b", 1500)], range(6), {}, "aba"),
    "a stopped machine needs its memory again": (
        [host("a", 1900, machine("web-vm-0", state="Stopped")), host("b", 1000)],
        range(4),
        {0: "a"},
        "ab",
    ),
    "a machine of another pool that is placed there needs its memory, too": (
        [replace(host("a", 2000), promised=OTHERS[:1]), replace(host("b", 1999), promised=OTHERS[:1])],
        range(2),
        {},
        "a",
    ),
    "and has it already when it runs": (
        [replace(host("a", 1500, machine("beside-vm-0")), promised=OTHERS[:1]), host("b", 999)],
        range(2),
        {},
        "a",
    ),
    "a host takes whole machines": ([host("a", most=5), host("b", most=3, free=1000)], range(6), {}, "aba"),
    "a machine keeps its host": ([host("a"), host("b")], range(4), {1: "b"}, "ba"),
    "also where there is no memory": ([host("a"), host("b", 0)], range(2), {0: "b"}, "b"),
    "also where nobody reaches the host": ([host("a"), host("b", reason=DARK)], range(2), {0: "b"}, "b"),
    "a new member joins the machine of others": ([host("a"), host("b")], [1], {0: "b"}, "b"),
    "a machine that is being removed still takes room": (
        [host("a", most=2), host("b", most=2, free=1000)],
        [0, 1],
        {2: "a"},
        "b",
    ),
    "a machine that only the survey knows is adopted": (
        [host("a"), host("b", 0, machine("web-vm-0"))],
        range(2),
        {},
        "b",
    ),
    "one of another operator is not": ([host("a"), host("b", 0, machine("web-vm-0", own=False))], range(2), {}, "a"),
    "nor one of another pool": ([host("a"), host("b", 0, machine("web-1-vm-0"))], range(2), {}, "a"),
    "a host that is gone keeps nothing": ([gone(host("a")), host("b")], range(2), {0: "a"}, "b"),
    "and takes nothing": ([gone(host("a")), host("b")], range(2), {}, "b"),
    "an unreachable host takes nothing new": ([host("a", reason=DARK), host("b")], range(4), {0: "b"}, "bb"),
}


@pytest.mark.parametrize(("hosts", "ordinals", "current", "expected"), CHOICES.values(), ids=CHOICES)
def test_who_goes_where(hosts: list[Host], ordinals: range, current: dict[int, str], expected: str) -> None:
    placement = place(pool(*hosts), MACHINES, ordinals, current)
    assert placement.failure is None
    chosen = {member.machine.name: member.host for member in placement.members if member.machine}
    assert "".join(where for _, where in sorted(chosen.items())) == expected
    assert [member.ordinal for member in placement.members] == list(ordinals)


WAITS = {
    "nobody has looked yet": ([UNKNOWN], range(2), {}, Reason.SURVEYING, "c: not looked at yet"),
    "another pool has it": (
        [host("c", reason=Reason.SURVEYING, known=False)],
        range(2),
        {},
        Reason.SURVEYING,
        "c: Surveying",
    ),
    "without a status a machine may be on any host": (
        [host("a"), host("b", reason=DARK, known=False)],
        range(4),
        {0: "a"},
        Reason.SURVEYING,
        "b: HostUnreachable",
    ),
    "one machine on two hosts": (
        [host("a", 5000, machine("web-vm-0")), host("b", 5000, machine("web-vm-0"))],
        range(2),
        {0: "a"},
        Reason.HOST_UNREACHABLE,
        "web-vm-0 is on the hosts a and b",
    ),
    "a host off the list may still run it": (
        [host("b")],
        range(2),
        {0: "a"},
        Reason.HOST_UNREACHABLE,
        "may still run on host a, which is no longer in spec.hosts: list it again, with state: Gone",
    ),
    "no memory": ([host("a", 500)], range(2), {}, Reason.TOO_FEW_HOSTS, "a: has 500 MiB of free memory"),
    "no memory beside other pools": (
        [replace(host("a", 3000), promised=OTHERS)],
        range(2),
        {},
        Reason.TOO_FEW_HOSTS,
        "a: has 500 MiB of free memory when all that are to be there run, and a virtual machine needs 1000",
    ),
    "no room": (
        [host("a", most=3)],
        range(4),
        {},
        Reason.TOO_FEW_HOSTS,
        "1 virtual machine has no host (a: has room for 1 virtual machine (maxMembers 3))",
    ),
    "all hosts gone": ([gone(host("a"))], range(2), {0: "a"}, Reason.TOO_FEW_HOSTS, "(there is none)"),
    "the gateway's address": (
        [host("a", 10**6, most=600)],
        [506],
        {},
        Reason.TOO_FEW_HOSTS,
        "10.1.0.254 is the address",
    ),
    "no address for the machine": ([host("a")], [508], {}, Reason.TOO_FEW_HOSTS, "10.0.0.0/24 has addresses for 254"),
}


@pytest.mark.parametrize(("hosts", "ordinals", "current", "reason", "says"), WAITS.values(), ids=WAITS)
def test_what_waits_says_why(
    hosts: list[Host], ordinals: range, current: dict[int, str], reason: Reason, says: str
) -> None:
    wide = replace(pool(*hosts), addresses="10.0.0.0/16" if "gateway" in says or "254 is" in says else "10.0.0.0/24")
    placement = place(wide, MACHINES, ordinals, current)
    assert placement.failure is not None
    assert placement.failure.reason is reason
    assert says in placement.failure.message


NAMES = ["a", "b", "c", "d"]
MACHINES_FOUND = st.lists(
    st.builds(
        machine,
        st.sampled_from([f"web-vm-{number}" for number in range(5)] + ["other-vm-0", "web-vm-x", "web-vm--1"]),
        own=st.booleans(),
        state=st.sampled_from(["Running", "Stopped", "Broken"]),
    ),
    max_size=3,
)
HOSTS = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).flatmap(
    lambda names: st.tuples(
        *(
            st.builds(
                lambda name, free, found, most, reason, is_gone: replace(
                    host(name, free, *found, most=most, reason=reason), gone=is_gone
                ),
                st.just(name),
                st.integers(0, 6000),
                MACHINES_FOUND,
                st.integers(0, 12),
                st.sampled_from(["", "", "", DARK]),
                st.booleans(),
            )
            for name in names
        )
    )
)


@given(
    hosts=HOSTS,
    ordinals=st.lists(st.integers(0, 11), unique=True, max_size=12),
    current=st.dictionaries(st.integers(0, 11), st.sampled_from(NAMES)),
)
def test_always(hosts: tuple[Host, ...], ordinals: list[int], current: dict[int, str]) -> None:
    placement = place(pool(*hosts), MACHINES, ordinals, current)
    assert (len(placement.members) == len(ordinals)) == (placement.failure is None)
    assert placement == place(pool(*hosts), MACHINES, ordinals, current), "the same again"
    listed = {one.name: one for one in hosts if not one.gone}
    where: dict[str, set[str]] = defaultdict(set)
    for member in placement.members:
        assert member.machine is not None
        assert member.machine.name == f"web-vm-{member.ordinal // 2}"
        where[member.machine.name].add(member.host)
        assert member.host in listed
    for name, chosen in where.items():
        assert len(chosen) == 1, "all members of a machine are on one host"
        known = {place for ordinal, place in current.items() if f"web-vm-{ordinal // 2}" == name}
        found = {one.name for one in listed.values() if one.survey and name in one.survey.own}
        left = (known | found) - {one.name for one in hosts if one.gone}
        assert left <= chosen, "a machine that may run somewhere is made nowhere else"
    for one in listed.values():
        kept = {f"web-vm-{ordinal // 2}" for ordinal, place in current.items() if place == one.name}
        kept |= set(one.survey.own) if one.survey else set()
        new = {name for name, chosen in where.items() if chosen == {one.name}} - kept
        if new:
            assert one.survey is not None
            assert one.survey.reached
            assert len(new) <= one.max_members // 2
            assert one.survey.free_memory_mebibytes >= 1000 * len(new)
