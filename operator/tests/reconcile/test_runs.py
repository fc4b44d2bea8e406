# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import results, runs
from shai_operator.reconcile.actions import Emit, Plan
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.objects import Inventory, Object
from shai_operator.reconcile.results import ACCESSES_LISTED, TALLY, WARNINGS_LISTED, MemberRun, State
from shai_operator.reconcile.runs import CancelAnalysis, StartAnalysis
from tests.reconcile.builders import (
    CREATED,
    FOR_SEARCH,
    condition,
    inventory,
    message,
    only_condition,
    resource,
    status_of,
    succeeded,
)

NOW = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
STARTED = CREATED
HASH, OTHER = "ab" * 32, "cd" * 32


def run(
    name: str = "one", spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **m: Any
) -> Object:
    wanted = {"pipeline": "syse", "trigger": "Manual", "scope": "All", "full": False, "deadlineSeconds": 60}
    return resource("AnalysisRun", name, wanted | (spec or {}), status or {}, **m)


def ended(name: str, status: str, reason: str, bundle: str = HASH, **more: Any) -> Object:
    found = {"conditions": [condition("Succeeded", status, reason, f"{reason}.")], "completionTime": STARTED}
    return run(name, status={**found, "bundle": bundle, **more})


def pipeline(bundle: str = HASH) -> Object:
    return resource("Pipeline", "syse", {"pool": "main"}, {"bundle": bundle})


def world(*objects: Object) -> Inventory:
    return inventory(resource("JailPool", "main", FOR_SEARCH), pipeline(), *objects)


def analysis(**more: Any) -> dict[str, Any]:
    return {
        "durationMicroseconds": 2_500_000,
        "conduits": 10,
        "classes": 3,
        "instances": 2,
        "accesses": [accesses()],
        "warnings": None,
        **tally(10, 9, 1),
        **more,
    }


def tally(expected: int, granted: int, refused: int = 0) -> dict[str, int]:
    own = expected - granted - refused
    return {"expected": expected, "granted": granted, "refused": refused, "undecided": own}


def accesses(task: str = "worker", expected: int = 10, granted: int = 9, **causes: int) -> dict[str, Any]:
    because = [
        {"policy": policy, "count": count, "instance": "worker(alice)", "conduit": "/a", "reason": f"{policy}()"}
        for policy, count in causes.items()
    ]
    found = {"task": task, "access": "read", "conduits": "documents", "instances": 2, "refusedBecause": because}
    return found | tally(expected, granted, sum(causes.values()))


def warning(number: int) -> dict[str, Any]:
    message = f"worker cannot read documents {number:03}: all are refused"
    return {"task": "worker", "access": "", "instance": f"worker({number:03})", "instances": 3, "message": message}


def member(number: int, state: State, **more: Any) -> MemberRun:
    found = analysis() if state == State.COMPLETE else None
    return MemberRun(**{"name": f"main-{number}", "state": state, "bundle": HASH, "analysis": found, **more})


def events(plan: Plan) -> list[tuple[str, str]]:
    return [(action.type, action.reason) for action in plan.actions if isinstance(action, Emit)]


def test_every_ready_member_is_asked() -> None:
    members = [member(0, State.PENDING), member(1, State.UNREADY, error="it starts"), member(2, State.RUNNING)]
    decision = runs.reconcile(run(spec={"scope": "Active", "full": True}), members, world(), NOW)
    assert decision.requests == [StartAnalysis("main-0", "syse", "Active", full=True)]
    assert succeeded(decision) == ("Unknown", "Running")
    assert status_of(decision)["startTime"] == timestamp(NOW)
    assert status_of(decision)["bundle"] == HASH
    assert [row["state"] for row in status_of(decision)["members"]] == ["Pending", "Unready", "Running"]


def test_progress_is_the_members_together() -> None:
    members = [
        member(0, State.RUNNING, phase="views", done=90, total=100),
        member(1, State.RUNNING, phase="classes", done=5, total=10),
        member(2, State.RUNNING, phase="conduits", done=7),
    ]
    decision = runs.reconcile(run(status={"startTime": STARTED}), members, world(), NOW)
    assert status_of(decision)["progress"] == {"phase": "conduits", "done": 102, "total": 110}
    assert status_of(decision)["startTime"] == STARTED


@pytest.mark.parametrize(
    ("known", "members", "says"),
    [
        (world(), [], "waits for a member of JailPool main to be ready (it has none)"),
        (world(), [member(0, State.UNREADY, error="no answer")], "(main-0: no answer)"),
        (Inventory(), [], "waits for Pipeline syse, which is not in namespace search; apply it"),
    ],
)
def test_a_run_waits_for_what_it_needs(known: Inventory, members: list[MemberRun], says: str) -> None:
    decision = runs.reconcile(run(), members, known, NOW)
    assert succeeded(decision) == ("Unknown", "Pending")
    assert says in message(decision)
    assert "startTime" not in status_of(decision)
    late = runs.reconcile(run(), members, known, NOW + timedelta(seconds=30))
    assert succeeded(late) == ("False", "TimedOut")


def test_members_of_a_pool_that_the_namespace_may_not_use_are_not_asked() -> None:
    known = world(resource("JailPool", "main", {"allowedNamespaces": {"names": ["other"]}}))
    members = [member(0, State.PENDING), member(1, State.RUNNING), member(2, State.COMPLETE)]
    decision = runs.reconcile(run(), members, known, NOW)
    assert decision.requests == [CancelAnalysis("main-1")]
    assert succeeded(decision) == ("Unknown", "Pending")
    assert "JailPool main does not serve namespace search" in message(decision)
    assert status_of(decision)["members"] == []
    assert runs.reconcile(run(), members, world(), NOW).requests == [StartAnalysis("main-0", "syse", "All", full=False)]


def test_a_complete_run_says_the_worst_of_its_members() -> None:
    members = [
        member(0, State.COMPLETE),
        member(
            1,
            State.COMPLETE,
            analysis=analysis(
                durationMicroseconds=7_000_999,
                accesses=[accesses(granted=4, friends=4, private=1), accesses("search", 0, 0)],
                warnings=[warning(number) for number in range(30)],
                **tally(10, 4, 5),
            ),
        ),
        member(2, State.UNREADY, error="no answer"),
    ]
    decision = runs.reconcile(run(status={"startTime": STARTED}), members, world(), NOW)
    assert succeeded(decision) == ("True", "Complete")
    assert message(decision) == "2 members are done; not ready and left out: main-2"
    found = status_of(decision)
    assert found["durationMilliseconds"] == 7000
    assert [entry["granted"] for entry in found["accesses"]] == [0, 4]
    assert {field: found[field] for field in TALLY} == tally(10, 4, 5)
    assert found["accesses"][1]["refusedBecause"][0] == {
        "policy": "friends", "count": 4, "instance": "worker(alice)", "conduit": "/a", "reason": "friends()"
    }  # fmt: skip
    assert len(found["warnings"]) == WARNINGS_LISTED
    assert found["warningsTotal"] == 30
    assert "access" not in found["warnings"][0], "instances that cannot start access nothing"
    assert found["completionTime"] == timestamp(NOW)
    assert [row["state"] for row in found["members"]] == ["Complete", "Complete", "Unready"]
    assert events(decision.plan) == [("Normal", "Complete")]


def test_the_same_warning_of_every_member_is_one_warning() -> None:
    found = analysis(warnings=[warning(1), warning(2)])
    members = [member(number, State.COMPLETE, analysis=found) for number in range(3)]
    decision = runs.reconcile(run(), members, world(), NOW)
    assert [entry["instance"] for entry in status_of(decision)["warnings"]] == ["worker(001)", "worker(002)"]
    assert status_of(decision)["warningsTotal"] == 2


def test_of_too_many_expectations_the_worst_are_shown() -> None:
    entries = [accesses(f"task{number:03}", 100, number) for number in range(100)]
    decision = runs.reconcile(run(), [member(0, State.COMPLETE, analysis=analysis(accesses=entries))], world(), NOW)
    assert [entry["granted"] for entry in status_of(decision)["accesses"]] == list(range(ACCESSES_LISTED))


@given(
    st.lists(
        st.dictionaries(st.integers(0, 2 * ACCESSES_LISTED), st.integers(0, 9), min_size=ACCESSES_LISTED), max_size=3
    )
)
def test_what_is_left_out_of_a_member_s_result_is_in_no_status(granted: list[dict[int, int]]) -> None:
    members = []
    for number, tasks in enumerate(granted):
        entries = [accesses(f"task{task:03}", 10, share) for task, share in tasks.items()]
        members.append(member(number, State.COMPLETE, analysis=analysis(accesses=entries)))
    short = [replace(one, analysis=results.shortened(one.analysis or {})) for one in members]
    assert results.found(short) == results.found(members)
    assert all(len((one.analysis or {})["accesses"]) <= ACCESSES_LISTED for one in short)


def test_a_failed_run_names_the_result_that_stays_in_force() -> None:
    members = [member(0, State.COMPLETE), member(1, State.FAILED, error="the disk is full")]
    earlier = [
        ended("good-1", "True", "Complete", OTHER, completionTime="2026-05-30T00:00:00Z"),
        ended("good-2", "True", "Complete", OTHER, completionTime="2026-05-31T00:00:00Z"),
        ended("bad", "False", "Failed", OTHER, completionTime="2026-05-31T12:00:00Z"),
    ]
    decision = runs.reconcile(run(status={"startTime": STARTED}), members, world(*earlier), NOW)
    assert succeeded(decision) == ("False", "Failed")
    assert message(decision) == (
        "1 of 2 members failed: main-1: the disk is full. "
        "The result of AnalysisRun good-2 (bundle cdcdcdcdcdcd) stays in force"
    )
    assert events(decision.plan) == [("Warning", "Failed")]
    alone = runs.reconcile(run(status={"startTime": STARTED}), members, world(), NOW)
    assert "There is no earlier result" in message(alone)


@pytest.mark.parametrize(
    ("made", "known", "reason"),
    [
        (run(annotations={"shai.dev/cancel": "true"}), world(), "Cancelled"),
        (run(status={"startTime": "2026-06-01T11:59:00Z"}), world(), "TimedOut"),
        (run(status={"startTime": STARTED}), Inventory(), "Failed"),
        (run(spec={"trigger": "Change", "bundle": OTHER}), world(), "Superseded"),
    ],
)
def test_a_run_that_is_ended_cancels_what_its_members_do(made: Object, known: Inventory, reason: str) -> None:
    members = [member(0, State.RUNNING), member(1, State.PENDING), member(2, State.COMPLETE)]
    decision = runs.reconcile(made, members, known, NOW)
    assert succeeded(decision) == ("False", reason)
    assert decision.requests == [CancelAnalysis("main-0")]


def test_the_run_of_the_present_bundle_goes_on() -> None:
    decision = runs.reconcile(run(spec={"trigger": "Change", "bundle": HASH}), [member(0, State.RUNNING)], world(), NOW)
    assert succeeded(decision) == ("Unknown", "Running")
    assert not decision.requests


@pytest.mark.parametrize(
    ("policy", "other", "reason"),
    [("Replace", "12:01", "Superseded"), ("Replace", "11:59", "Running"), ("Allow", "12:01", "Running")],
)
def test_a_newer_scheduled_run_replaces_an_older_one_when_it_should(policy: str, other: str, reason: str) -> None:
    oa = resource("OfflineAnalysis", "nightly", {"pipeline": "syse", "concurrencyPolicy": policy}, {})
    scheduled = {"trigger": "Schedule", "offlineAnalysis": "nightly"}
    newer = run("two", spec={**scheduled, "scheduledTime": f"2026-06-01T{other}:00Z"})
    own = run(spec={**scheduled, "scheduledTime": STARTED})
    decision = runs.reconcile(own, [member(0, State.RUNNING)], world(oa, newer, own), NOW)
    assert succeeded(decision)[1] == reason


def test_a_finished_run_is_left_alone_and_a_deleted_one_cancelled() -> None:
    members = [member(0, State.RUNNING)]
    for made in (ended("one", "True", "Complete"), run(deletionTimestamp=STARTED)):
        decision = runs.reconcile(made, members, world(), NOW)
        assert decision.requests == [CancelAnalysis("main-0")]
        assert decision.plan == Plan()


def analyzed(*objects: Object) -> tuple[str, str, str]:
    found = only_condition(runs.analyzed(pipeline(), world(*objects), NOW))
    assert found["type"] == "Analyzed"
    return found["status"], found["reason"], found["message"]


HEALTHY: dict[str, Any] = {
    **tally(100, 50, 48),
    "accesses": [accesses("a", 50, 25, friends=20, private=2), accesses("b", 50, 25, private=23, public=2, home=1)],
    "warningsTotal": 0,
}
BLOCKED: dict[str, Any] = {**HEALTHY, "warningsTotal": 2, "warnings": [warning(1)]}
SAID = (
    "of 100 expected accesses 50 are granted, 48 refused by policy (private 25, friends 20, public 2), 2 decided when"
)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], ("Unknown", "Pending", "has not been analysed yet")),
        ([ended("a", "True", "Complete", OTHER)], ("Unknown", "Pending", "bundle abababababab")),
        ([ended("a", "True", "Complete", **HEALTHY)], ("True", "Complete", SAID)),
        (
            [ended("a", "True", "Complete", **BLOCKED)],
            (
                "True",
                "TasksBlocked",
                "worker cannot read documents 001: all are refused; and 1 more warning in its status.warnings",
            ),
        ),
        ([ended("a", "False", "Failed")], ("False", "Failed", "AnalysisRun a: Failed.")),
        ([ended("a", "False", "TimedOut")], ("False", "Failed", "TimedOut")),
        (
            [ended("a", "True", "Complete"), ended("b", "False", "Failed", completionTime="2026-06-02T00:00:00Z")],
            ("False", "Failed", "AnalysisRun b"),
        ),
        (
            [ended("a", "False", "Failed"), ended("b", "True", "Complete", completionTime="2026-06-02T00:00:00Z")],
            ("True", "Complete", "AnalysisRun b"),
        ),
        (
            [ended("a", "True", "Complete"), ended("b", "False", "Cancelled", completionTime="2026-06-02T00:00:00Z")],
            ("True", "Complete", "AnalysisRun a"),
        ),
    ],
)
def test_a_pipeline_says_what_its_analysis_came_to(objects: list[Object], expected: tuple[str, str, str]) -> None:
    status, reason, text = analyzed(*objects)
    assert (status, reason) == expected[:2]
    assert expected[2] in text


@pytest.mark.parametrize(
    ("rolled_out", "about"), [(("True", 2), 2), (("True", 1), 1), (("False", 2), 1), (("Unknown", 2), 1)]
)
def test_an_analysis_is_of_the_generation_that_is_in_force(rolled_out: tuple[str, int], about: int) -> None:
    """The bundle in force is that of an earlier generation until the present one is rolled out."""
    known = [
        {**condition("RolledOut", rolled_out[0]), "observedGeneration": rolled_out[1]},
        {**condition("Analyzed", "True", "Complete"), "observedGeneration": 1},
    ]
    obj = resource("Pipeline", "syse", {"pool": "main"}, {"bundle": HASH, "conditions": known}, generation=2)
    found = only_condition(runs.analyzed(obj, world(ended("a", "True", "Complete", **HEALTHY)), NOW))
    assert (found["status"], found["observedGeneration"]) == ("True", about)


def test_a_pipeline_without_a_bundle_has_no_such_condition() -> None:
    assert runs.analyzed(pipeline(""), world(), NOW) == Plan()
