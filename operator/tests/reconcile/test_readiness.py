# SPDX-License-Identifier: BSD-2-Clause
"""`Ready` is true only when every member that is wanted runs what the specs of its generation say.

The order in which things happen is random: people change specs, the operator hears of it later, in another order, or
not before the next change; members die, and start again; the operator crashes. What is written is compared with what
the members had in force at the last look at them of which the writer could know.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shai_operator.reconcile import definitions, policies, rollout_status
from shai_operator.reconcile.actions import Create, Delete, SetStatus
from shai_operator.reconcile.conditions import find
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import Object, Reference, generation, name, reference, spec, status
from tests.reconcile.builders import FOR_SEARCH, SEAL
from tests.reconcile.pool_world import POOL, World

POLICY, TASK, PIPELINE = (Reference(*ref) for ref in (
    ("Policy", "search", "public"), ("Task", "search", "search"), ("Pipeline", "search", "syse")
))  # fmt: skip
DEFINITIONS = (POLICY, TASK, PIPELINE)
NOBODY: dict[str, Any] = {"allowedNamespaces": {"names": []}}
FOR_THE_OPERATOR = {"rollout", "pool"}


@dataclass(frozen=True)
class Had:
    """What a member had at a look."""

    configuration: str
    serves: bool
    objects: Any


class ReadyWorld(World):
    """A world in which the operator hears of changes late, and everything is checked, looked at and reported."""

    def __init__(self, replicas: int) -> None:
        super().__init__(replicas)
        self.api: dict[Reference, Object] = {ref: self.known.get(ref) or {} for ref in (*DEFINITIONS, POOL)}
        """What people have applied."""
        self.verdicts: dict[Reference, int] = {}
        """The generation in which each definition was checked last."""
        self.configurations = {1: self.digest}
        """The digest of the members that each generation of the pool wants."""
        self.specs: dict[Reference, dict[int, Any]] = {ref: {1: spec(obj)} for ref, obj in self.api.items()}
        self.at_the_look: dict[str, Had | None] = {}
        self.reported: dict[Reference, dict[str, Had | None]] = {}
        """What the wanted members had when the pool wrote last about an object."""
        self.believed: dict[Reference, dict[str, Had | None]] = {}
        """What was reported when an object's condition Ready was written last."""

    # People.

    def submit(self, ref: Reference, **changed: Any) -> None:
        before = self.api[ref]
        wanted = {**deepcopy(dict(spec(before))), **changed}
        if wanted == spec(before):
            return
        number = generation(before) + 1
        self.api[ref] = {**before, "metadata": {**before["metadata"], "generation": number}, "spec": wanted}
        self.specs[ref][number] = wanted
        if ref == POOL:
            self.configurations[number] = f"for {wanted.get('image')}"

    # The operator.

    def hear(self, ref: Reference) -> None:
        """Deliver the present version of an object to the operator."""
        known, present = self.known.get(ref), self.api[ref]
        assert known is not None
        metadata = {**known["metadata"], "generation": generation(present)}
        self.known.put({**known, "metadata": metadata, "spec": deepcopy(spec(present))})
        if ref == POOL:
            self.digest = self.configurations[generation(present)]
        self.unchecked = {"search"} if self.pending() else set()

    def check(self) -> None:
        """Check the definitions as the operator knows them."""
        self.verdicts = {ref: generation(self.known.get(ref) or {}) for ref in DEFINITIONS}
        self.unchecked = set()

    def pending(self) -> bool:
        known = {ref: self.known.get(ref) for ref in (TASK, PIPELINE)}
        return any(obj is None or self.verdicts.get(ref) != generation(obj) for ref, obj in known.items())

    def define_look(self, ref: Reference) -> None:
        """Reconcile a policy or a pipeline by itself."""
        obj = self.known.get(ref)
        assert obj is not None
        current = self.verdicts.get(ref) == generation(obj)
        if ref == PIPELINE:
            verdicts = {its: Verdict() for its in self.verdicts if its != PIPELINE or current}
            plan = definitions.pipeline(obj, verdicts, self.known, self.now)
        else:
            plan = policies.reconcile(
                obj,
                self.known,
                problem="" if current else None,
                parameters=(),
                composed="",
                missing=False,
                used=True,
                seal=SEAL,
                now=self.now,
            )
        for action in plan.actions:
            self.carry_out(action)

    def look(self, most: int = 10_000) -> None:
        plan = self.plan()
        statuses = [action for action in plan.actions if isinstance(action, SetStatus)]
        rows = next((its.status["members"] for its in statuses if its.obj["kind"] == "JailPool"), ())
        self.at_the_look = {row["name"]: self.had(row["name"]) for row in rows if "drainingSince" not in row}
        for action in plan.actions[:most]:
            self.carry_out(action)

    def had(self, called: str) -> Had | None:
        machine = self.machines.get(called)
        if machine is None:
            return None
        objects = machine.bundle.release.objects if machine.bundle else {}
        pipelines = [its for (kind, _), its in objects.items() if kind == "Pipeline"]
        tasks = {(name(its), task) for its in pipelines for task in spec(its)["tasks"]}
        serves = machine.alive and all(machine.tasks.get(task) == "Running" for task in tasks)
        return Had(machine.configuration, serves, objects)

    def carry_out(self, action: Any) -> None:
        match action:
            case Create():
                made = action.body
                self.known.put({**made, "metadata": {**made["metadata"], "uid": f"uid of {name(made)}"}, "status": {}})
            case Delete():
                self.known.remove(action.target)
            case _:
                super().carry_out(action)

    def set_status(self, action: SetStatus) -> None:
        if action.writer == rollout_status.WRITER or action.obj["kind"] == "JailPool":
            self.reported[reference(action.obj)] = dict(self.at_the_look)
        if action.writer != rollout_status.WRITER:
            self.believed[reference(action.obj)] = self.reported.get(reference(action.obj), {})
        super().set_status(action)

    def restart(self) -> None:
        """Lose everything that is in no status, and hear of everything again."""
        self.effects, self.verdicts = {}, {}
        for machine in self.machines.values():
            machine.samples, machine.refused, machine.failures = (), {}, 0
        for ref in (*DEFINITIONS, POOL):
            self.hear(ref)

    def ready(self, ref: Reference) -> dict[str, Any] | None:
        """Return the condition Ready if it is True and about the present generation, as `kubectl wait` reads it."""
        found = find(self.known.get(ref) or {}, "Ready")
        current = found is not None and found["observedGeneration"] == generation(self.api[ref])
        return found if found is not None and current and found["status"] == "True" else None

    def everything_is_ready(self) -> bool:
        return all(self.ready(ref) for ref in (POLICY, PIPELINE, POOL))

    def go_on(self, rounds: int) -> None:
        """Let the operator work, with users, until all is ready."""
        for _ in range(rounds):
            for ref in (*DEFINITIONS, POOL):
                self.hear(ref)
            self.check()
            for ref in (POLICY, PIPELINE):
                self.define_look(ref)
            self.settle(1, 15)
            for ref in (POLICY, PIPELINE):
                self.define_look(ref)
            if self.everything_is_ready():
                return


def for_monitors(obj: Object) -> Any:
    """Return the part of a pipeline's spec that a monitor gets."""
    return {key: value for key, value in obj.items() if key not in FOR_THE_OPERATOR}


class Readiness(RuleBasedStateMachine):
    """One pool, one namespace, one pipeline with its policy and task."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ReadyWorld(2)
        self.number = 1

    @initialize(replicas=st.integers(0, 3), settled=st.booleans())
    def begin(self, replicas: int, *, settled: bool) -> None:
        self.world.submit(POOL, replicas=replicas)
        if settled:
            self.world.go_on(15)

    # People, and what they break.

    @rule()
    def change_the_policy(self) -> None:
        self.number += 1
        self.world.submit(POLICY, text=f"text {self.number}")

    @rule()
    def change_the_policy_back(self) -> None:
        self.world.submit(POLICY, text="one")

    @rule()
    def change_the_task(self) -> None:
        self.number += 1
        self.world.submit(TASK, command=[f"/bin/{self.number}"])

    @rule()
    def change_the_pipeline(self) -> None:
        self.number += 1
        self.world.submit(PIPELINE, variables=[{"name": "N", "value": str(self.number)}])

    @rule(paused=st.booleans())
    def pause(self, *, paused: bool) -> None:
        self.world.submit(PIPELINE, rollout=spec(self.world.api[PIPELINE])["rollout"] | {"paused": paused})

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas: int) -> None:
        self.world.submit(POOL, replicas=replicas)

    @rule()
    def change_the_pool(self) -> None:
        self.number += 1
        self.world.submit(POOL, image=f"image {self.number}")

    @rule(allowed=st.booleans())
    def allow(self, *, allowed: bool) -> None:
        self.world.submit(POOL, **(FOR_SEARCH if allowed else NOBODY))

    @rule(ordinal=st.integers(0, 4), back=st.booleans())
    def a_member_dies_or_comes_back(self, ordinal: int, *, back: bool) -> None:
        machine = self.world.machines.get(f"default-{ordinal}")
        if machine is not None:
            machine.alive = back

    @rule(ordinal=st.integers(0, 4))
    def a_member_starts_again(self, ordinal: int) -> None:
        machine = self.world.machines.get(f"default-{ordinal}")
        if machine is not None:
            machine.alive, machine.counters, machine.tasks = True, (0, 0, 0, 0), dict.fromkeys(machine.tasks, "Stopped")

    # The operator.

    @rule(ref=st.sampled_from([*DEFINITIONS, POOL]))
    def it_hears(self, ref: Reference) -> None:
        self.world.hear(ref)

    @rule()
    def it_checks(self) -> None:
        self.world.check()

    @rule(ref=st.sampled_from([POLICY, PIPELINE]))
    def it_looks_at_a_definition(self, ref: Reference) -> None:
        self.world.define_look(ref)

    @rule(actions=st.one_of(st.just(10_000), st.integers(0, 12)))
    def it_looks_at_the_pool(self, actions: int) -> None:
        self.world.look(actions)

    @rule()
    def it_starts_again(self) -> None:
        self.world.restart()

    @rule(checks=st.booleans())
    def it_hears_of_all_and_looks(self, *, checks: bool) -> None:
        for ref in (*DEFINITIONS, POOL):
            self.world.hear(ref)
        if checks:
            self.world.check()
        self.world.look()
        for ref in (POLICY, PIPELINE):
            self.world.define_look(ref)

    @rule(rounds=st.integers(1, 6))
    def it_works(self, rounds: int) -> None:
        self.world.go_on(rounds)

    # What has to hold.

    @invariant()
    def ready_is_true_only_when_all_members_run_it(self) -> None:
        for ref in (POLICY, PIPELINE, POOL):
            found = self.world.ready(ref)
            if found is not None:
                had = self.world.believed[ref]
                wanted = self.world.specs[ref][found["observedGeneration"]]
                check = {"Policy": lacks_text, "Pipeline": lacks_pipeline, "JailPool": self.lacks}[ref.kind]
                problem = check(had, wanted)
                assert not problem, f"{ref} is Ready ({found}), and {problem}: {had}"

    def lacks(self, had: dict[str, Had | None], wanted: Any) -> str:
        if len(had) != wanted["replicas"]:
            return f"there are {len(had)} of {wanted['replicas']} members"
        digest = self.world.configurations[generation(self.world.api[POOL])]
        found = [called for called, its in had.items() if its is None or not its.serves or its.configuration != digest]
        return f"{found} do not serve as the pool wants" if found else ""

    def teardown(self) -> None:
        """Check that all becomes ready when nothing happens any more."""
        world = self.world
        for machine in world.machines.values():
            machine.alive = True
        world.submit(POOL, replicas=max(1, spec(world.api[POOL])["replicas"]), **FOR_SEARCH)
        self.pause(paused=False)
        world.go_on(60)
        if "RolledBack" in json.dumps(world.status) + json.dumps(status(world.known.get(POLICY) or {})):
            # Members did not stay ready with the last change, as far as the operator could see.
            self.change_the_policy()
            self.change_the_task()
            world.go_on(60)
        assert world.everything_is_ready(), {
            ref: status(world.known.get(ref) or {}) for ref in (POLICY, PIPELINE, POOL)
        }
        self.ready_is_true_only_when_all_members_run_it()


def lacks_text(had: dict[str, Had | None], wanted: Any) -> str:
    """Say which members enforce another text of the policy; those that have no policies enforce none."""
    texts = {called: its.objects.get(("Policy", POLICY.name)) for called, its in had.items() if its is not None}
    wrong = [called for called, held in texts.items() if held is not None and spec(held)["text"] != wanted["text"]]
    return f"{wrong} have another text" if wrong else ""


def lacks_pipeline(had: dict[str, Had | None], wanted: Any) -> str:
    """Say which members do not serve the pipeline."""
    held = {called: its.objects.get(("Pipeline", PIPELINE.name)) if its else None for called, its in had.items()}
    wrong = [
        called
        for called, its in had.items()
        if its is None or not its.serves or for_monitors(spec(held[called] or {"spec": {}})) != for_monitors(wanted)
    ]
    return f"{wrong} do not serve it" if wrong else "" if had else "there is no member"


def ready_world(replicas: int = 3) -> ReadyWorld:
    """Return a world in which all is ready."""
    world = ReadyWorld(replicas)
    world.go_on(20)
    assert world.everything_is_ready()
    return world


def say(world: ReadyWorld, ref: Reference) -> tuple[str, str]:
    """Return status and reason of the condition Ready of an object."""
    found = find(world.known.get(ref) or {}, "Ready") or {}
    return found.get("status", ""), found.get("reason", "")


def test_ready_of_an_earlier_generation_is_not_said_of_the_present_one() -> None:
    for ref, change in ((POLICY, {"text": "two"}), (PIPELINE, {"variables": [{"name": "N", "value": "1"}]})):
        world = ready_world()
        world.submit(ref, **change)
        assert say(world, ref)[0] == "True"
        assert not world.ready(ref), "as kubectl wait reads it"
        world.hear(ref)
        for checked in ("Checking", "Pending"):
            world.define_look(ref)
            assert say(world, ref) == ("Unknown", checked)
            world.check()
        world.go_on(20)
        assert world.everything_is_ready()


def test_a_pipeline_is_not_ready_before_its_policies_text_has_a_revision() -> None:
    world = ready_world()
    world.submit(POLICY, text="two")
    world.submit(PIPELINE, rollout={"steps": []})
    world.hear(POLICY)
    world.hear(PIPELINE)
    world.check()
    world.look()
    world.define_look(PIPELINE)
    assert say(world, PIPELINE) == ("False", "Progressing")


def test_nothing_is_ready_while_a_member_may_come_back_with_what_was_before() -> None:
    world = ready_world()
    world.submit(POOL, healing={"failureThreshold": 100_000})
    world.go_on(3)
    world.machines["default-2"].alive = False
    world.submit(POLICY, text="two")
    world.go_on(80)
    assert world.share()["stableRelease"] == world.machines["default-0"].bundle.release.name  # type: ignore[union-attr]
    assert world.texts() == ["two", "two", "one"]
    assert (say(world, POLICY), say(world, PIPELINE)) == (("False", "Progressing"),) * 2
    world.machines["default-2"].alive = True
    world.go_on(5)
    assert world.texts() == ["two"] * 3
    assert world.everything_is_ready()


def test_a_pool_is_not_ready_before_its_members_are_as_its_spec_says() -> None:
    world = ready_world()
    world.submit(POOL, image="other")
    world.hear(POOL)
    world.look()
    assert say(world, POOL) == ("False", "Updating")
    world.go_on(20)
    assert {machine.configuration for machine in world.machines.values()} == {"for other"}
    assert world.everything_is_ready()


def test_a_pipeline_whose_last_members_are_leaving_has_none() -> None:
    world = ready_world()
    for machine in world.machines.values():
        machine.sessions = 1
    world.submit(POOL, replicas=0)
    world.hear(POOL)
    world.look()
    world.define_look(PIPELINE)
    assert len(world.status["members"]) == 3
    assert say(world, PIPELINE) == ("False", "NoMembers")


def test_a_pipeline_that_one_member_does_not_serve_is_not_ready() -> None:
    world = ready_world()
    world.machines["default-1"].alive = False
    world.look()
    world.define_look(PIPELINE)
    assert say(world, PIPELINE) == ("False", "MembersNotReady")
    assert world.ready(POLICY), "no member has another text"


TestReadiness = Readiness.TestCase
TestReadiness.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a sequence is short enough to read
)
