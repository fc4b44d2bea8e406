# SPDX-License-Identifier: BSD-2-Clause
"""Whose members are: by examples, and under random sequences of what people do, with crashes of the operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shai_operator.reconcile import assignment, pools, tenancy, tenants, upkeep
from shai_operator.reconcile.machines import Replacements
from shai_operator.reconcile.members import Observation
from shai_operator.reconcile.tenancy import DISCARD, Claim
from shai_operator.reconcile.upkeep import Care
from tests.reconcile.builders import resource, tenant
from tests.reconcile.pool_world import World

SPACES = ("a", "b", "c")
A, B, C = (tenant(called) for called in SPACES)
NOBODY = tenants.NOBODY


def members_of(*owners: Any) -> list[Observation]:
    return [Observation(f"default-{number}", number, tenant=owner) for number, owner in enumerate(owners)]


@pytest.mark.parametrize(
    ("owners", "claims", "given"),
    [
        ((NOBODY,), (), (NOBODY,)),
        ((NOBODY,) * 3, (Claim(A, active=True),), (A,) * 3),
        ((NOBODY,) * 4, (Claim(B, active=True), Claim(A, active=True)), (B, A, B, A)),
        ((A, A, NOBODY), (Claim(A, active=True), Claim(B, active=True)), (A, A, B)),
        ((NOBODY,) * 3, (Claim(A, active=False), Claim(B, active=True)), (B, NOBODY, B)),
        ((NOBODY,), (Claim(A, active=False), Claim(B, active=True)), (B,)),
        ((NOBODY,), (Claim(A, active=False),), (NOBODY,)),
        ((C, NOBODY), (Claim(A, active=True),), (C, A)),
    ],
)
def test_free_members_go_to_the_namespace_that_has_fewest(
    owners: tuple[Any, ...], claims: tuple[Claim, ...], given: tuple[Any, ...]
) -> None:
    pool = resource("JailPool", "default")
    found = assignment.assigned(pool, members_of(*owners), claims, range(10))
    assert tuple(member.tenant for member in found) == given
    unplaced = assignment.assigned(pool, members_of(*owners), claims, ())
    assert tuple(member.tenant for member in unplaced) == owners, "one that may never be made is nobody's"


def test_a_member_that_is_made_again_waits_until_its_row_is_nobody_s() -> None:
    row = {"name": "default-0", "ordinal": 0, "namespace": "a", "namespaceUID": A.uid}
    pool = resource("JailPool", "default", status={"members": [row]})
    found = assignment.assigned(pool, members_of(NOBODY, NOBODY), (Claim(B, active=True),), range(2))
    assert [member.tenant for member in found] == [NOBODY, B]


@pytest.mark.parametrize(
    ("owners", "replicas", "stay"),
    [
        ((A, A, A, B), 3, (0, 1, 3)),
        ((A, A, A, B), 2, (0, 3)),
        ((A, A, A, B), 1, (0,)),
        ((A, B, NOBODY, B), 3, (0, 1, 3)),
        ((B, A, B, A), 3, (0, 1, 2)),
        ((A, B, C), 2, (0, 1)),
    ],
)
def test_who_goes_first(owners: tuple[Any, ...], replicas: int, stay: tuple[int, ...]) -> None:
    assert upkeep.ordinals(Care(replicas=replicas), members_of(*owners)) == stay


def test_of_the_largest_namespace_those_that_are_not_ready_go_first() -> None:
    known = [replace(member, draining_since=None) for member in members_of(A, B, A)]
    assert upkeep.ordinals(Care(replicas=2, unready_first=True), known) == (0, 1)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, which takes minutes: a sequence is short enough to read."""


class Pool(RuleBasedStateMachine):
    """A pool of namespaces that come, go, lose it, and are deleted and made again by others."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(3, allowedNamespaces={"names": []})
        self.world.leave("search")
        self.numbers = dict.fromkeys(SPACES, 1)
        self.lost = False

    @initialize(replicas=st.integers(0, 5))
    def begin(self, replicas: int) -> None:
        for called in SPACES:
            self.world.join(called, text=f"of {called}")
        self.world.change("JailPool", "default", replicas=replicas, allowedNamespaces={"names": ["a", "b"]})

    @rule(names=st.lists(st.sampled_from(SPACES), unique=True), selects=st.booleans())
    def allow(self, names: list[str], *, selects: bool) -> None:
        selector = {"selector": {"matchLabels": {"team": "x"}}} if selects else {}
        self.world.change("JailPool", "default", allowedNamespaces={"names": names, **selector})

    @rule(called=st.sampled_from(SPACES), team=st.sampled_from(["x", "y"]))
    def make_again(self, called: str, team: str) -> None:
        self.numbers[called] += 1
        self.world.join(called, self.numbers[called], text=f"of {called} {self.numbers[called]}", team=team)

    @rule(called=st.sampled_from(SPACES))
    def leave(self, called: str) -> None:
        self.world.leave(called)

    @rule(replicas=st.integers(0, 5))
    def scale(self, replicas: int) -> None:
        self.world.change("JailPool", "default", replicas=replicas)

    @rule(named=st.sampled_from(["a", "b", "c", "a,b"]))
    def give_up(self, named: str) -> None:
        self.world.annotate(DISCARD, named)

    @rule(ordinal=st.integers(0, 5))
    def die(self, ordinal: int) -> None:
        machine = self.world.machines.get(f"default-{ordinal}")
        if machine is not None:
            machine.alive = not machine.alive

    @rule()
    def lose_the_status(self) -> None:
        self.world.lose_status()
        self.lost = True

    @rule(actions=st.integers(0, 12))
    def crash(self, actions: int) -> None:
        self.look(actions)

    @rule(looks=st.integers(1, 6))
    def work(self, looks: int) -> None:
        for _ in range(looks):
            self.look()
            self.world.visit(6)

    def look(self, actions: int = 10_000) -> None:
        before = {member.ordinal: member for member in self.world.observed().members.values()}
        rows = {row["name"]: row for row in self.world.status.get("members", ())}
        self.world.look(actions)
        self.nothing_is_taken(rows)
        self.nobody_starves(before)

    def nothing_is_taken(self, rows: dict[str, Any]) -> None:
        """Check what the API server's rule demands of each write."""
        for row in self.world.status.get("members", ()):
            old = rows.get(row["name"], {})
            if "namespace" in old:
                same = tenants.of_row(row) == tenants.of_row(old)
                assert same or ("namespace" not in row and "configuration" not in row), (old, row)

    def nobody_starves(self, before: dict[int, Observation]) -> None:
        pool = self.world.pool
        given_up = assignment.discarded(pool, before.values())
        stay = {ordinal for ordinal, member in before.items() if member.draining_since is None} - given_up
        chosen = set(pools.ordinals(pool, {member.name: member for member in before.values()}, Replacements()))
        left = Counter(before[ordinal].tenant for ordinal in stay & chosen)
        lost = {before[ordinal].tenant for ordinal in stay - chosen} - {NOBODY}
        for owner in lost:
            assert left[owner] or max(left.values(), default=0) <= 1, (lost, left)

    @invariant()
    def data_are_of_one_namespace(self) -> None:
        for called, machine in self.world.machines.items():
            assert len(machine.written) <= 1, f"{called} has data of {machine.written}"

    @invariant()
    def a_member_has_what_is_of_its_namespace_only(self) -> None:
        rows = {row["name"]: tenants.of_row(row) for row in self.world.status.get("members", ())}
        for called, machine in self.world.machines.items():
            assert self.lost or machine.written <= {rows.get(called, NOBODY)}, called

    def teardown(self) -> None:
        """Check what becomes of it when nobody does anything any more."""
        for machine in self.world.machines.values():
            machine.alive = True
        self.world.settle(40)
        self.data_are_of_one_namespace()
        if self.lost:
            return
        may = {its.name: its for its in tenancy.allowed(self.world.pool, self.world.known)}
        owners = Counter(tenants.of_row(row) for row in self.world.status["members"])
        for called, row in zip(sorted(self.world.machines), self.world.status["members"], strict=True):
            owner = tenants.of_row(row)
            bundle = self.world.machines[called].bundle
            runs = bundle.release.namespace if bundle and bundle.release.manifests else ""
            assert runs == (owner.name if may.get(owner.name) == owner else ""), (called, row)
        claims = tenancy.claims(self.world.pool, self.world.known)
        lacking = [claim for claim in claims if claim.active and not owners[claim.tenant]]
        assert not lacking or not owners[NOBODY], "a free member is for whoever has none"


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, phases=PHASES)
