# SPDX-License-Identifier: BSD-2-Clause
"""Runs of tasks: single decisions, and whole runs in random worlds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shai_operator.reconcile import attempts, conditions, task_run_members, task_run_objects, task_runs
from shai_operator.reconcile.actions import Delete, Requeue, SetFinalizer, SetStatus
from shai_operator.reconcile.attempts import Ending, Reason, Refusal
from shai_operator.reconcile.objects import FINALIZER, Object, finalizers, reference, status, uid
from shai_operator.reconcile.task_run_members import Member
from shai_operator.reconcile.task_runs import Decision, Follow, Stop, Waiting
from tests.reconcile.builders import (
    FOR_SEARCH,
    condition,
    inventory,
    message,
    resource,
    status_of,
    succeeded,
)

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
POOL = resource("JailPool", "default", FOR_SEARCH)
PIPELINE = resource("Pipeline", "p", {"tasks": ["index", "serve"]})
INDEX = resource("Task", "index", {"run": "Once"})
SERVE = resource("Task", "serve", {"run": "Always"})
READY = (Member("default-0", monitor="s0"), Member("default-1", monitor="s0"))
ATTEMPT = {"number": 1, "startTime": "2026-06-01T12:00:00Z", "monitorStarted": "s0"}
GOES_ON = {"member": "default-0", "startTime": "2026-06-01T12:00:00Z", "attempts": [ATTEMPT]}


def run(
    called: str = "r", spec: dict[str, Any] | None = None, known: dict[str, Any] | None = None, **metadata: Any
) -> Object:
    wanted = {"pipeline": "p", "task": "index", "trigger": "Manual", **(spec or {})}
    return resource("TaskRun", called, wanted, known, **{"finalizers": [FINALIZER], **metadata})


def decide(
    one: Object,
    *others: Object,
    members: tuple[Member, ...] | None = READY,
    known: Ending | Waiting | None = None,
    at: float = 0,
) -> Decision:
    everything = inventory(POOL, PIPELINE, INDEX, SERVE, one, *others)
    return task_runs.reconcile(one, members, known, everything, NOW + timedelta(seconds=at))


def test_an_attempt_is_written_before_it_starts() -> None:
    first = decide(run(finalizers=[]))
    assert first.plan.actions == [SetFinalizer(run(finalizers=[]), present=True)], "or a deletion would leave the task"
    begun = decide(run())
    assert begun.request is None
    written = status_of(begun)
    assert (written["member"], written["instance"], written["attempts"]) == ("default-0", "index", [ATTEMPT])
    goes_on = run("r", known=GOES_ON)
    assert decide(goes_on).request == Follow("default-0", "p", "index", attempts.of(goes_on)[0])


@pytest.mark.parametrize(
    ("one", "members", "status", "reason", "text"),
    [
        (run(spec={"pipeline": "q"}), READY, "Unknown", "Pending", "waits for Pipeline q"),
        (run(spec={"task": "other"}), READY, "False", "Failed", "Pipeline p has no task other"),
        (run(spec={"task": "serve"}), READY, "False", "NotOnce", "has run: Always"),
        (run(), (), "Unknown", "Pending", "waits for a member of the pipeline's pool to be ready (it has none)"),
        (run(), (Member("m", "is away"),), "Unknown", "Pending", "(m: is away)"),
        (run(spec={"member": "m"}), READY, "Unknown", "Pending", "its members: default-0, default-1"),
        (run(spec={"member": "m"}), (*READY, Member("m", "is away")), "Unknown", "Pending", "waits for m: is away"),
        (run(spec={"cancel": True}), READY, "False", "Cancelled", "cancelled"),
    ],
)
def test_why_a_run_does_not_start(
    one: Object, members: tuple[Member, ...], status: str, reason: str, text: str
) -> None:
    found = decide(one, members=members)
    assert (succeeded(found), text in message(found)) == ((status, reason), True), message(found)
    assert found.request is None


def test_a_pool_that_does_not_serve_the_namespace_runs_nothing() -> None:
    other = resource("JailPool", "default", {"allowedNamespaces": {"names": ["secret-team"]}})
    found = task_runs.reconcile(run(), READY, None, inventory(other, PIPELINE, INDEX, run()), NOW)
    assert (succeeded(found), "secret-team" in message(found)) == (("Unknown", "Pending"), False)


def test_one_run_of_a_task_goes_on_on_a_member() -> None:
    goes_on = run("r", known=GOES_ON)
    later = run("s", spec={"member": "default-0"})
    assert succeeded(decide(later, goes_on)) == ("Unknown", "Queued")
    assert "TaskRun r is before it" in message(decide(later, goes_on))
    elsewhere = run("s", spec={"member": "default-1"})
    assert succeeded(decide(elsewhere, goes_on)) == ("Unknown", "Running")


def test_what_a_member_needs_goes_first() -> None:
    asked = run("a", spec={"member": "default-0"})
    needed = run("z", spec={"member": "default-0", "trigger": "BringUp"})
    assert succeeded(decide(asked, needed)) == ("Unknown", "Queued")
    assert succeeded(decide(needed, asked)) == ("Unknown", "Running")


def test_what_a_member_needs_waits_for_what_goes_on() -> None:
    goes_on = run("a", known=GOES_ON)
    needed = run("z", spec={"member": "default-0", "trigger": "BringUp"})
    assert succeeded(decide(needed, goes_on)) == ("Unknown", "Queued")


def test_every_attempt_has_a_name_of_its_own() -> None:
    names = {
        attempts.identity(run(called, uid=called), attempts.Attempt(number, NOW, "s0"))
        for called in ("a", "b")
        for number in (1, 2)
    }
    assert len(names) == 4


@pytest.mark.parametrize(
    ("ending", "spec", "expected"),
    [
        (Ending(Reason.SUCCEEDED, exit_code=0), {}, ("True", "Complete")),
        (Ending(Reason.FAILED, "exited with status 3", 3), {}, ("False", "Failed")),
        (Ending(Reason.FAILED, "exited with status 3", 3), {"retries": {"limit": 1}}, ("Unknown", "Retrying")),
        (Ending(Reason.INTERRUPTED, "anew"), {}, ("False", "Interrupted")),
        (Ending(Reason.INTERRUPTED, "anew"), {"retries": {"limit": 1}}, ("Unknown", "Retrying")),
        (Ending(Reason.STOPPED, "stopped"), {}, ("False", "Stopped")),
        (Ending(Reason.STOPPED, "stopped"), {"cancel": True}, ("False", "Cancelled")),
        (Ending(Reason.SUCCEEDED, exit_code=0), {"cancel": True}, ("True", "Complete")),
        (Ending(Reason.STOPPED, ""), {"timeoutSeconds": 5, "retries": {"limit": 9}}, ("False", "TimedOut")),
    ],
)
def test_how_a_run_ends(ending: Ending, spec: dict[str, Any], expected: tuple[str, str]) -> None:
    found = decide(run(spec=spec, known=GOES_ON), known=ending, at=9)
    assert succeeded(found) == expected
    written = status_of(found)
    assert ("completionTime" in written) == (expected[0] != "Unknown")
    assert written.get("exitCode") == ending.exit_code
    assert written["attempts"][0]["reason"] == ending.reason


def test_denials_are_counted_and_name_no_document() -> None:
    refusals = (Refusal("read", "inbox-bob", "owned", 2), Refusal("ptrace", "", "", 1))
    found = decide(run(known=GOES_ON), known=Ending(Reason.FAILED, "status 1", 1, denials=3, refusals=refusals))
    written = status_of(found)
    assert written["denials"] == 3
    assert written["refusals"] == [
        {"operation": "read", "conduits": "inbox-bob", "policy": "owned", "count": 2},
        {"operation": "ptrace", "count": 1},
    ]
    assert "3 accesses were denied" in message(found)


def test_a_run_that_is_to_end_is_stopped() -> None:
    for spec, at in (({"cancel": True}, 0), ({"timeoutSeconds": 5}, 5)):
        found = decide(run(spec=spec, known=GOES_ON), at=at)
        assert isinstance(found.request, Stop)
        assert succeeded(found) == ("Unknown", "Stopping")
    deleted = run(known=GOES_ON, deletionTimestamp="2026-06-01T12:00:00Z")
    assert isinstance(decide(deleted).request, Stop)
    forced = run(
        known=GOES_ON,
        deletionTimestamp="2026-06-01T12:00:00Z",
        annotations={"shai.dev/force-delete": "true"},
    )
    found = decide(forced)
    assert found.request is None
    assert SetFinalizer(forced, present=False) in found.plan.actions


def test_members_and_pipelines_that_go() -> None:
    goes_on = run(known=GOES_ON)
    assert decide(goes_on, members=None).request is not None, "what is not known yet is not gone"
    assert succeeded(decide(goes_on, members=READY[1:])) == ("False", "MemberGone")
    retried = run(spec={"retries": {"limit": 1}}, known=GOES_ON)
    assert succeeded(decide(retried, members=READY[1:])) == ("Unknown", "Retrying")
    bound = run(spec={"retries": {"limit": 1}, "member": "default-0"}, known=GOES_ON)
    assert succeeded(decide(bound, members=READY[1:])) == ("False", "MemberGone")
    without = task_runs.reconcile(goes_on, None, None, inventory(POOL, INDEX, goes_on), NOW)
    assert (succeeded(without), "was deleted" in message(without)) == (("False", "Failed"), True)


def test_delays_between_attempts_double_up_to_an_hour() -> None:
    def due(number: int) -> float:
        one = run(spec={"retries": {"limit": 99, "backoffSeconds": 10}}, known=GOES_ON)
        last = attempts.Attempt(number, NOW, "s0", ended_at=NOW)
        moment = attempts.retry_at(one, [last])
        assert moment is not None
        return (moment - NOW).total_seconds()

    assert [due(number) for number in (1, 2, 3, 9, 99)] == [10, 20, 40, 2560, 3600]


def done(called: str, result: str, *, minute: int = 0, ttl: int | None = None, **spec: Any) -> Object:
    known = {"conditions": [condition("Succeeded", result)], "completionTime": "2026-06-01T12:00:00Z"}
    more = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    made = {"member": "default-0", "trigger": "BringUp", **more, **spec}
    return run(called, made, known, finalizers=[], creationTimestamp=f"2026-06-01T11:{minute:02}:00Z")


def test_finished_runs_live_as_long_as_they_may() -> None:
    forever, brief = done("r", "True"), done("r", "True", ttl=60)
    assert decide(forever).plan.actions == []
    assert decide(brief, at=59).plan.actions == [Requeue(1.0)]
    assert decide(brief, at=60).plan.actions == [Delete(reference(brief), uid(brief))]


def test_only_the_last_runs_are_kept() -> None:
    kept = [done(f"good-{n}", "True", minute=n) for n in range(5)] + [
        done(f"bad-{n}", "False", minute=n) for n in range(3)
    ]
    others = [
        done("by-hand", "True", trigger="Manual"),
        done("elsewhere", "True", member="default-1"),
        run("active", {"trigger": "BringUp"}),
    ]
    plan = task_run_objects.history(PIPELINE, inventory(PIPELINE, *kept, *others))
    names = [action.target.name for action in plan.actions if isinstance(action, Delete)]
    assert sorted(names) == ["bad-0", "bad-1", "good-0", "good-1"]
    none = resource("Pipeline", "p", {"taskRuns": {"successfulRunsHistoryLimit": 0, "failedRunsHistoryLimit": 9}})
    plan = task_run_objects.history(none, inventory(none, *kept))
    assert len(plan.actions) == 5


def test_runs_that_members_need_inherit_from_their_pipeline() -> None:
    pipeline = resource(
        "Pipeline", "p", {"taskRuns": {"timeoutSeconds": 9, "retries": {"limit": 2}, "failedRunsHistoryLimit": 3}}
    )
    made = task_run_objects.made(pipeline, "t" * 63, "m-0", "01234567")
    assert len(made["metadata"]["name"]) == 63
    assert made["metadata"]["ownerReferences"][0]["uid"] == uid(pipeline)
    assert made["spec"]["timeoutSeconds"] == 9
    assert "failedRunsHistoryLimit" not in made["spec"]


# Whole runs


@dataclass
class Monitor:
    """A member's monitor: the runs that it knows, and how often it has started the program."""

    life: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)

    @property
    def started(self) -> str:
        return f"life {self.life}"

    def restart(self) -> None:
        self.life, self.runs = self.life + 1, {}

    def busy(self) -> bool:
        return "Running" in self.runs.values()

    def ask(self, wanted: Follow | Stop, identity: str) -> Ending | Waiting | None:
        """Do what the controller's request does; None: the run goes on, and its end is waited for."""
        if wanted.attempt.monitor != self.started:
            return Ending(Reason.INTERRUPTED)
        if isinstance(wanted, Stop):
            state = self.runs.get(identity, "Running")
            self.runs[identity] = "Stopped" if state == "Running" else state
        elif identity not in self.runs:
            if self.busy():
                return Waiting("another run goes on", queued=True)
            self.runs[identity] = "Running"
            self.starts.append(identity)
        state = self.runs[identity]
        return None if state == "Running" else Ending(Reason(state), exit_code=0 if state == "Succeeded" else None)

    def end(self, state: str) -> None:
        self.runs = {identity: state if now == "Running" else now for identity, now in self.runs.items()}


class World:
    """One member, runs of one task, and an operator that forgets everything when it is killed."""

    def __init__(self, specs: list[dict[str, Any]]) -> None:
        self.monitor = Monitor()
        self.now = NOW
        self.inventory = inventory(POOL, PIPELINE, INDEX)
        self.answers: dict[str, Ending | Waiting] = {}
        for number, spec in enumerate(specs):
            self.inventory.put(run(f"r{number}", spec, finalizers=[], uid=f"u{number}"))

    def all(self) -> list[Object]:
        return self.inventory.all("TaskRun")

    def update(self, one: Object, **changes: Any) -> Object:
        metadata = one["metadata"]
        version = int(metadata.get("resourceVersion", 0)) + 1
        made: dict[str, Any] = {
            **one,
            **{key: value for key, value in changes.items() if key != "metadata"},
            "metadata": {**metadata, **changes.get("metadata", {}), "resourceVersion": str(version)},
        }
        self.inventory.put(made)
        return made

    def step(self, number: int, *, crash_after: int | None = None, away: bool = False) -> None:
        """Reconcile one run; with ``crash_after``, the operator is killed after so many actions."""
        found = self.all()
        if number >= len(found):
            return
        one = found[number]
        attempt = attempts.active(one)
        identity = "" if attempt is None else attempts.identity(one, attempt)
        members = (Member("default-0", "is away" if away else "", self.monitor.started),)
        decision = task_runs.reconcile(one, members, self.answers.pop(identity, None), self.inventory, self.now)
        for count, action in enumerate(decision.plan.actions):
            if crash_after is not None and count >= crash_after:
                self.answers.clear()
                return
            if isinstance(action, SetStatus):
                one = self.update(one, status=action.status)
            elif isinstance(action, SetFinalizer):
                one = self.update(one, metadata={"finalizers": [FINALIZER] if action.present else []})
        if decision.request is None or attempt is None:
            return
        if away:
            self.answers[identity] = Waiting("does not answer")
            return
        answer = self.monitor.ask(decision.request, identity)
        if crash_after is not None:
            self.answers.clear()  # killed after the request, before its answer
        elif answer is not None:
            self.answers[identity] = answer

    def cancel(self, number: int) -> None:
        found = self.all()
        if number < len(found):
            self.update(found[number], spec={**found[number]["spec"], "cancel": True})


EVENTS = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 2), st.sampled_from([None, None, 0, 1, 2, 9]), st.booleans()),
    st.tuples(st.just("end"), st.sampled_from(["Succeeded", "Failed", "Stopped"])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("wait"), st.integers(1, 100)),
    st.tuples(st.just("cancel"), st.integers(0, 2)),
)
SPECS = st.fixed_dictionaries(
    {"retries": st.fixed_dictionaries({"limit": st.integers(0, 3), "backoffSeconds": st.just(10)})},
    optional={"timeoutSeconds": st.integers(20, 200), "member": st.just("default-0")},
)


def apply(world: World, event: tuple[Any, ...]) -> None:
    match event:
        case ("step", number, crash, away):
            world.step(number, crash_after=crash, away=away)
        case ("end", state):
            world.monitor.end(state)
        case ("restart",):
            world.monitor.restart()
        case ("wait", seconds):
            world.now += timedelta(seconds=seconds)
        case ("cancel", number):
            world.cancel(number)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SPECS, min_size=1, max_size=3), st.lists(EVENTS, max_size=60))
def test_no_run_is_lost_and_none_is_done_twice(specs: list[dict[str, Any]], events: list[tuple[Any, ...]]) -> None:
    """Whatever is killed when: each start of the program is a counted attempt, and every run ends."""
    world = World(specs)
    ended: dict[str, Any] = {}
    for event in events:
        apply(world, event)
        assert list(world.monitor.runs.values()).count("Running") <= 1, "two runs at a time"
        for one in world.all():
            if uid(one) in ended:
                assert status(one) == ended[uid(one)], "a run that has ended changed"
            elif task_run_members.finished(one):
                ended[uid(one)] = status(one)
    for _ in range(200):  # peace: the program succeeds, and nothing is killed
        for number in range(len(specs)):
            world.step(number)
        world.monitor.end("Succeeded")
        world.now += timedelta(seconds=5)
    for one in world.all():
        assert task_run_members.finished(one), status(one)
        assert FINALIZER not in finalizers(one)
        known = conditions.find(one, "Succeeded") or {}
        counted = attempts.of(one)
        assert not any(attempt.open for attempt in counted)
        mine = [start for start in world.monitor.starts if start.startswith(f"{uid(one)}-")]
        assert len(mine) == len(set(mine)), "an attempt was started twice"
        assert {int(start.rpartition("-")[2]) for start in mine} <= {attempt.number for attempt in counted}
        assert len(counted) <= one["spec"]["retries"]["limit"] + 1
        if known["reason"] == "Complete":
            assert counted[-1].reason == "Succeeded"
    assert not world.monitor.busy()
