# SPDX-License-Identifier: BSD-2-Clause
"""Rollouts under random events; every step checks the invariants.

The events are faulty changes, dying members, crashes of the operator, pauses, new candidates and scaling.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shai_operator.reconcile import rollout, rollout_state
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.judging import Limits
from shai_operator.reconcile.members import Sample
from shai_operator.reconcile.rollout_state import Decision, Member, Settings, Situation, Step

FAULTS = ("none", "denies", "slow", "refused", "crashes", "blocks")
STEPS = (
    (Step(1, 30), Step("100%", 30)),
    (Step("25%", 10), Step("50%", 0), Step("100%", 20)),
    (Step(2, 60), Step(3, 60), Step("100%", 0)),
    (Step("100%", 15),),
)


@dataclass(frozen=True)
class Change:
    """A release and its faults."""

    name: str
    fault: str = "none"
    of_policy: bool = True
    """A rollback rejects a revision of a policy, so that the specs mean the stable release again."""


@dataclass
class Machine:
    """The real state of a member."""

    ordinal: int
    runs: str = ""
    alive: bool = True
    process: int = 0
    counters: tuple[int, int, int, int] = (0, 0, 0, 0)
    refused: set[str] = field(default_factory=set)
    samples: tuple[Sample, ...] = ()


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 3, 1, tzinfo=UTC)
        self.status = "{}"
        self.machines: dict[str, Machine] = {}
        self.releases = {"": Change("")}
        self.desired = ""
        self.held: tuple[str, ...] = ()
        self.rejected_since_change: set[str] = set()
        self.settings = Settings()
        self.effect: Effect | None = None
        self.comparison_refusal = ""
        self.last: Decision | None = None

    @initialize(size=st.integers(0, 6), steps=st.sampled_from(STEPS), minimum=st.sampled_from([1, 20, 60]))
    def begin(self, size: int, steps: tuple[Step, ...], minimum: int) -> None:
        self.settings = Settings(steps, Limits(minimum_sessions=minimum))
        self.scale(size)
        self.change(Change("r1"))

    # Actions of people, and faults of machines.

    def change(self, target: Change) -> None:
        self.releases[target.name] = target
        if target.name != self.desired:
            self.desired, self.held, self.rejected_since_change = target.name, (), set()

    @rule(fault=st.sampled_from(FAULTS), of_policy=st.booleans())
    def change_the_specs(self, fault: str, *, of_policy: bool) -> None:
        self.change(Change(f"r{len(self.releases)}", fault, of_policy))

    @rule(choice=st.randoms(use_true_random=False))
    def go_back_to_an_earlier_spec(self, choice: st.DataObject) -> None:
        names = sorted(self.releases.keys() - {""})
        self.change(self.releases[choice.choice(names)])  # type: ignore[attr-defined]

    @rule(paused=st.booleans())
    def pause(self, *, paused: bool) -> None:
        self.settings = Settings(self.settings.steps, self.settings.limits, paused)

    @rule(size=st.integers(0, 6))
    def scale(self, size: int) -> None:
        for ordinal in range(6):
            name = f"m{ordinal}"
            if ordinal >= size:
                self.machines.pop(name, None)
            elif name not in self.machines:
                self.machines[name] = Machine(ordinal)

    @rule(ordinal=st.integers(0, 5))
    def a_member_dies(self, ordinal: int) -> None:
        if f"m{ordinal}" in self.machines:
            self.machines[f"m{ordinal}"].alive = False

    @rule(ordinal=st.integers(0, 5))
    def a_member_is_mended(self, ordinal: int) -> None:
        machine = self.machines.get(f"m{ordinal}")
        if machine is not None and not machine.alive:
            machine.alive, machine.process, machine.counters = True, machine.process + 1, (0, 0, 0, 0)

    @rule(sessions=st.integers(0, 50))
    def people_search(self, sessions: int) -> None:
        for machine in self.machines.values():
            fault = self.releases[machine.runs].fault
            if machine.alive and machine.runs and fault != "crashes":
                denials = sessions * 3 if fault == "denies" else 0
                microseconds = sessions * (9000 if fault == "slow" else 1000)
                more = (sessions, sessions * 10, denials, microseconds)
                machine.counters = tuple(a + b for a, b in zip(machine.counters, more, strict=True))  # type: ignore[assignment]

    @rule(seconds=st.sampled_from([1, 10, 30, 61, 700]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds, microseconds=12345)

    @rule(looks=st.integers(1, 8))
    def some_time_goes_by(self, looks: int) -> None:
        for _ in range(looks):
            self.the_operator_looks()
            self.people_search(15)
            self.time_passes(10)

    @rule()
    def the_operator_crashes(self) -> None:
        """Everything except the status is lost."""
        self.effect, self.comparison_refusal = None, ""
        for machine in self.machines.values():
            machine.samples, machine.refused = (), set()

    # Actions of the operator.

    @rule(carries_out=st.integers(0, 6))
    def the_operator_looks(self, carries_out: int = 6) -> None:
        """Decide, write the status, and carry it out on ``carries_out`` members."""
        self.sample()
        situation = self.situation()
        decision = rollout.decide(situation)
        self.check(situation, decision)
        self.last = decision
        if decision.reject:  # written before the pool's status
            self.held = decision.reject
        updated = {
            "rollout": rollout_state.write(decision.state),
            "stable": decision.stable,
            "rejected": decision.rejected,
        }
        self.status = json.dumps(updated)
        if decision.rejected and decision.verdict == "RollBack":
            self.rejected_since_change.add(decision.rejected)
            if self.releases[decision.rejected].of_policy:
                self.desired = decision.stable
        if decision.comparison is not None:
            self.compare(decision)
        for name in sorted(self.machines)[:carries_out]:
            self.apply(self.machines[name], decision.targets[name])

    def sample(self) -> None:
        for machine in self.machines.values():
            if machine.alive and machine.runs:
                machine.samples = (
                    *machine.samples,
                    Sample(self.now, str(machine.process), machine.runs, *machine.counters),
                )

    def situation(self) -> Situation:
        status = json.loads(self.status)
        stable, fault = status.get("stable", ""), self.releases[self.desired].fault
        return Situation(
            stable=stable,
            desired=self.desired,
            rejected=status.get("rejected", ""),
            state=rollout_state.read(status),
            members=[self.view(name, machine, stable) for name, machine in sorted(self.machines.items())],
            settings=self.settings,
            now=self.now,
            effect=self.effect,
            refusal=self.comparison_refusal if fault == "refused" else "",
            changed=("p",) if self.releases[self.desired].of_policy else (),
            held=self.held,
            first=not stable,
        )

    def view(self, name: str, machine: Machine, stable: str) -> Member:
        alive = machine.alive and self.releases[machine.runs].fault != "crashes"
        return Member(
            name=name,
            ordinal=machine.ordinal,
            release=machine.runs,
            ready=alive,
            answers=machine.alive,
            comparable=machine.alive and machine.runs == stable,
            refuses_stable=stable in machine.refused and machine.runs != stable,
            refusal="does not parse" if self.desired in machine.refused and machine.runs != self.desired else "",
            samples=machine.samples,
        )

    def compare(self, decision: Decision) -> None:
        need = decision.comparison
        assert need is not None
        assert self.machines[need.member].alive
        assert self.machines[need.member].runs == need.before == decision.stable
        fault = self.releases[need.candidate].fault
        if fault == "refused":
            self.comparison_refusal = "does not parse"
        else:
            closed = 90 if fault == "blocks" else 3
            self.effect = Effect(need.before, need.candidate, {"flowsBefore": 100, "closedTotal": closed})

    def apply(self, machine: Machine, release: str) -> None:
        if not machine.alive or not release or release == machine.runs:
            return
        if self.releases[release].fault == "refused":
            machine.refused.add(release)
        else:
            machine.runs = release

    # Invariants.

    def check(self, situation: Situation, decision: Decision) -> None:
        state, size = decision.state, len(self.machines)
        assert rollout_state.read(json.loads(json.dumps({"rollout": rollout_state.write(state)}))) == state
        assert set(decision.targets) == set(self.machines)
        trying = [name for name, release in decision.targets.items() if release == state.candidate != ""]
        unharmed = all(member.refuses_stable for member in situation.members)  # then no member can be harmed
        if decision.stable and situation.stable and not unharmed:
            self.check_shares(situation, decision, trying, size)
        assert not self.rejected_since_change & set(decision.targets.values()) - {decision.stable}
        promoted = decision.stable != situation.stable
        if promoted and situation.stable and not unharmed:
            old, new = self.releases[situation.stable].fault, self.releases[decision.stable].fault
            # Where there were no sessions before, there is no cost to compare with.
            unseen = {"slow"} if "no sessions were seen before" in decision.condition.message else set()
            assert new in {"none", old} | unseen, (
                f"{decision.stable}, which {new}, was promoted: {decision.condition.message}"
            )
            assert not situation.settings.paused
        if situation.settings.paused and situation.stable and not unharmed:
            before = {member.name for member in situation.members if member.name in situation.state.canaries}
            assert set(trying) <= before

    def check_shares(self, situation: Situation, decision: Decision, trying: list[str], size: int) -> None:
        """No more members have a candidate than the step allows; the others have a judged release.

        While a release is compared that is wanted again, canaries keep it.
        """
        state = decision.state
        allowed = len(state.canaries) if state.superseded == state.candidate else 0
        if state.step:
            steps = situation.settings.steps
            last = state.step >= len(steps)
            allowed = size if last else steps[state.step - 1].count(size)
        assert len(trying) <= allowed
        assert set(trying) <= set(state.canaries)
        for name, release in decision.targets.items():
            expected = {decision.stable} | ({state.candidate, state.superseded} if name in state.canaries else set())
            assert release in expected - {""}

    @invariant()
    def the_status_is_plain(self) -> None:
        assert len(self.status) < 16_000

    @precondition(lambda self: self.machines)
    @rule()
    def without_faults_it_converges(self) -> None:
        """With repaired members, traffic, and a change without faults, all members get the release."""
        self.pause(paused=False)
        for ordinal in range(6):
            self.a_member_is_mended(ordinal)
        self.change(Change(f"r{len(self.releases)}"))
        for _ in range(60):
            self.the_operator_looks()
            self.people_search(30)
            self.time_passes(30)
        assert self.last is not None
        assert (self.last.stable, self.last.condition.reason) == (self.desired, "Complete"), self.last.condition.message
        assert {machine.runs for machine in self.machines.values()} == {self.desired}

    @precondition(lambda self: self.machines and json.loads(self.status).get("stable"))
    @rule(fault=st.sampled_from(FAULTS[1:]), of_policy=st.booleans())
    def with_a_fault_all_go_back(self, fault: str, *, of_policy: bool) -> None:
        stable = json.loads(self.status)["stable"]
        if self.releases[stable].fault != "none":
            return  # a change that denies no more than the stable release is no regression
        self.without_faults_it_converges()
        stable = self.desired
        self.change(Change(f"r{len(self.releases)}", fault, of_policy))
        for _ in range(60):
            self.the_operator_looks()
            self.people_search(30)
            self.time_passes(30)
        assert self.last is not None
        reason = "BlocksFlows" if fault == "blocks" else "RolledBack"
        assert (self.last.stable, self.last.condition.reason) == (stable, reason), self.last.condition.message
        assert {machine.runs for machine in self.machines.values()} == {stable}


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=150, stateful_step_count=40)
