# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shai_operator.reconcile import analyses
from shai_operator.reconcile.actions import Create, Delete, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import timestamp
from shai_operator.reconcile.objects import Inventory, Object
from tests.reconcile.builders import condition, inventory, only_condition, resource, written

NOW = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
HASH = "ab" * 32
OTHER = "cd" * 32


def oa(status: dict[str, Any] | None = None, **spec: Any) -> Object:
    wanted = {"pipeline": "syse", "schedule": "0 * * * *", "timeZone": "Etc/UTC", **spec}
    return resource(
        "OfflineAnalysis",
        "nightly",
        wanted,
        {"lastScheduleTime": "2026-06-01T11:00:00Z", **(status or {})},
        creationTimestamp="2026-06-01T00:00:30Z",
    )


def run(name: str, succeeded: str = "Unknown", reason: str = "Running", **more: Any) -> Object:
    spec = {"pipeline": "syse", "offlineAnalysis": "nightly", "trigger": "Schedule", **more.pop("spec", {})}
    status = {"conditions": [condition("Succeeded", succeeded, reason)], **more.pop("status", {})}
    return resource("AnalysisRun", name, spec, status, **more)


def world(*objects: Object) -> Inventory:
    return inventory(resource("Pipeline", "syse"), *objects)


def only(plan: Plan, kind: type) -> list[Any]:
    return [action for action in plan.actions if isinstance(action, kind)]


def ready(plan: Plan) -> tuple[str, str]:
    found = only_condition(plan)
    return found["status"], found["reason"]


def test_a_run_is_made_for_the_time_that_has_come() -> None:
    plan = analyses.reconcile(oa(scope="Active", deadlineSeconds=60), world(), NOW)
    (create,) = only(plan, Create)
    assert create.body["metadata"]["name"] == f"nightly-{int(NOW.timestamp()) // 60}"
    assert create.body["metadata"]["ownerReferences"][0]["uid"] == "uid-nightly"
    assert create.body["spec"] == {
        "pipeline": "syse",
        "offlineAnalysis": "nightly",
        "scope": "Active",
        "deadlineSeconds": 60,
        "trigger": "Schedule",
        "scheduledTime": "2026-06-01T12:00:00Z",
    }
    status = written(plan)
    assert status["lastScheduleTime"] == "2026-06-01T12:00:00Z"
    assert status["nextScheduleTime"] == "2026-06-01T13:00:00Z"
    assert status["active"] == [create.body["metadata"]["name"]]
    assert ready(plan) == ("True", "Scheduled")
    assert only(plan, Requeue) == [Requeue(3570.0)]
    kinds = [type(action) for action in plan.actions]
    assert kinds.index(Create) < kinds.index(SetStatus), "a status must not promise what may fail"


def test_nothing_is_made_twice() -> None:
    """The crash comes after the creation: the status is old, but the run exists."""
    made = run("nightly-29671920", spec={"scheduledTime": "2026-06-01T12:00:00Z"})
    plan = analyses.reconcile(oa(), world(made), NOW)
    assert not only(plan, Create)
    assert written(plan)["lastScheduleTime"] == "2026-06-01T12:00:00Z"


@pytest.mark.parametrize("last", ["2026-06-01T11:00:00Z", ""])
@pytest.mark.parametrize(
    "written_by_somebody",
    [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "2026-06-01T12:30:00Z",
        "2016-12-31T23:59:60Z",
        "2026-06-01",
    ],
)
def test_a_run_for_a_time_that_cannot_have_come_disturbs_no_schedule(written_by_somebody: str, last: str) -> None:
    foreign = run("nightly-0", "True", "Complete", spec={"scheduledTime": written_by_somebody})
    status = {"lastScheduleTime": last} if last else {}
    plan = analyses.reconcile(
        resource(
            "OfflineAnalysis",
            "nightly",
            {"pipeline": "syse", "schedule": "0 * * * *", "timeZone": "America/New_York"},
            status,
            creationTimestamp="2026-06-01T11:00:30Z",
        ),
        world(foreign),
        NOW,
    )
    (create,) = only(plan, Create)
    assert create.body["spec"]["scheduledTime"] == "2026-06-01T12:00:00Z"
    assert written(plan)["lastScheduleTime"] == "2026-06-01T12:00:00Z"


def test_the_status_alone_is_enough_too() -> None:
    plan = analyses.reconcile(oa(status={"lastScheduleTime": "2026-06-01T12:00:00Z"}), world(), NOW)
    assert not only(plan, Create)
    assert written(plan)["lastScheduleTime"] == "2026-06-01T12:00:00Z"


@pytest.mark.parametrize(
    ("last", "patience", "made", "event"),
    [
        ("2026-06-01T11:00:00Z", None, True, "AnalysisStarted"),
        ("2026-06-01T09:00:00Z", None, True, "MissedSchedule"),
        ("2026-05-01T09:00:00Z", None, True, "TooManyMissedTimes"),
        ("2026-05-01T09:00:00Z", 3600, True, "AnalysisStarted"),
        ("2026-06-01T11:00:00Z", 30, False, "MissedSchedule"),
        ("2026-06-01T11:00:00Z", 31, True, "AnalysisStarted"),
        ("2026-06-01T12:00:00Z", 30, False, None),
    ],
)
def test_missed_starts(last: str, patience: int | None, made: bool, event: str | None) -> None:  # noqa: FBT001
    spec = {} if patience is None else {"startingDeadlineSeconds": patience}
    plan = analyses.reconcile(oa({"lastScheduleTime": last}, **spec), world(), NOW)
    assert bool(only(plan, Create)) == made
    assert [emit.reason for emit in only(plan, Emit)] == ([event] if event else [])


def test_the_event_says_how_many_were_missed() -> None:
    plan = analyses.reconcile(oa({"lastScheduleTime": "2026-06-01T09:00:00Z"}), world(), NOW)
    assert "3 runs were due since 2026-06-01T09:00:00Z" in only(plan, Emit)[0].message
    plan = analyses.reconcile(oa({"lastScheduleTime": "2026-05-01T09:00:00Z"}), world(), NOW)
    assert "more than 100 runs were due" in only(plan, Emit)[0].message


@pytest.mark.parametrize(("policy", "made"), [("Forbid", False), ("Allow", True), ("Replace", True), (None, False)])
def test_concurrency(policy: str | None, made: bool) -> None:  # noqa: FBT001
    going = run("nightly-1", spec={"scheduledTime": "2026-06-01T11:00:00Z"})
    spec: dict[str, Any] = {"concurrencyPolicy": policy} if policy else {}
    plan = analyses.reconcile(oa(**spec), world(going), NOW)
    assert bool(only(plan, Create)) == made
    if not made:
        assert [emit.reason for emit in only(plan, Emit)] == ["AlreadyActive"]
        assert written(plan)["lastScheduleTime"] == "2026-06-01T11:00:00Z", "it is made up for later"


@pytest.mark.parametrize(
    ("spec", "without", "reason"),
    [
        ({"suspend": True}, False, "Suspended"),
        ({"schedule": "0 0 30 2 *"}, False, "NeverFires"),
        ({"schedule": "0 25 * * *"}, False, "InvalidSchedule"),
        ({"schedule": "0 0 */8 * 1#5"}, False, "NeverFires"),
        ({"timeZone": "Mars/Olympus"}, False, "InvalidSchedule"),
        ({}, True, "PipelineMissing"),
    ],
)
def test_what_cannot_be_scheduled_says_why_and_makes_nothing(
    spec: dict[str, Any],
    without: bool,  # noqa: FBT001
    reason: str,
) -> None:
    plan = analyses.reconcile(oa(**spec), Inventory() if without else world(), NOW)
    assert ready(plan) == ("False", reason)
    assert not only(plan, Create)
    assert not only(plan, Requeue)
    assert "nextScheduleTime" not in written(plan)
    assert [emit.reason for emit in only(plan, Emit)] == ([] if reason == "Suspended" else [reason])


def test_the_oldest_finished_runs_beyond_the_limits_go() -> None:
    good = [run(f"good-{n}", "True", "Complete", creationTimestamp=f"2026-06-01T0{n}:00:00Z") for n in range(5)]
    bad = [run(f"bad-{n}", "False", "Failed", creationTimestamp=f"2026-06-01T0{n}:00:00Z") for n in range(3)]
    going = run("going", creationTimestamp="2026-05-01T00:00:00Z")
    plan = analyses.reconcile(oa(successfulRunsHistoryLimit=2, suspend=True), world(*good, *bad, going), NOW)
    assert sorted(action.target.name for action in only(plan, Delete)) == [
        "bad-0",
        "bad-1",
        "good-0",
        "good-1",
        "good-2",
    ]
    assert written(plan)["active"] == ["going"]


def test_the_last_success_is_remembered_without_its_run() -> None:
    good = run("good", "True", "Complete", status={"completionTime": "2026-06-01T11:02:00Z"})
    before = {"lastSuccessfulTime": "2026-06-01T10:00:00Z"}
    assert written(analyses.reconcile(oa(before), world(good), NOW))["lastSuccessfulTime"] == "2026-06-01T11:02:00Z"
    assert written(analyses.reconcile(oa(before), world(), NOW))["lastSuccessfulTime"] == "2026-06-01T10:00:00Z"


def test_long_waits_look_at_the_wall_clock_in_between() -> None:
    plan = analyses.reconcile(oa({"lastScheduleTime": timestamp(NOW)}, schedule="0 0 1 1 *"), world(), NOW)
    assert only(plan, Requeue) == [Requeue(3600.0)]


def test_it_is_done_with_what_is_being_deleted() -> None:
    going = resource("OfflineAnalysis", "nightly", oa()["spec"], deletionTimestamp=timestamp(NOW))
    assert analyses.reconcile(going, world(), NOW) == Plan()


def change(bundle: str, succeeded: str = "True", **more: Any) -> Object:
    name = analyses.change_name("syse", bundle)
    spec = {"trigger": "Change", "offlineAnalysis": "", "bundle": bundle}
    return run(name, succeeded, "Complete", spec=spec, **more)


def pipeline(bundle: str) -> Object:
    return resource("Pipeline", "syse", {}, {"bundle": bundle})


def test_a_changed_bundle_is_analyzed_once() -> None:
    plan = analyses.changes(pipeline(HASH), world())
    (create,) = only(plan, Create)
    assert create.body["metadata"]["name"] == "syse-abababababab"
    assert create.body["spec"] == {"pipeline": "syse", "trigger": "Change", "bundle": HASH}
    assert create.body["metadata"]["ownerReferences"][0]["kind"] == "Pipeline"
    assert not only(analyses.changes(pipeline(HASH), world(change(HASH, "Unknown"))), Create)
    assert not only(analyses.changes(pipeline(HASH), world(change(HASH))), Create)


def test_before_there_is_a_bundle_there_is_nothing_to_analyze() -> None:
    assert analyses.changes(pipeline(""), world()) == Plan()


@pytest.mark.parametrize(
    ("spec", "made"),
    [({"onChange": "Ignore"}, False), ({"suspend": True}, False), ({"onChange": "Run", "scope": "Active"}, True)],
)
def test_an_offline_analysis_says_what_a_change_means(spec: dict[str, Any], made: bool) -> None:  # noqa: FBT001
    creates = only(analyses.changes(pipeline(HASH), world(oa(**spec))), Create)
    assert bool(creates) == made
    if made:
        assert creates[0].body["spec"]["scope"] == "Active"


def test_an_analysis_of_another_pipeline_has_no_say() -> None:
    assert only(analyses.changes(pipeline(HASH), world(oa(pipeline="other", onChange="Ignore"))), Create)


def test_coming_back_to_an_earlier_bundle_analyzes_it_again() -> None:
    first = change(HASH, creationTimestamp="2026-06-01T10:00:00Z")
    second = change(OTHER, creationTimestamp="2026-06-01T11:00:00Z")
    plan = analyses.changes(pipeline(HASH), world(first, second))
    assert [action.target.name for action in only(plan, Delete)] == ["syse-abababababab"]
    plan = analyses.changes(pipeline(HASH), world(second))
    assert only(plan, Create)
    unfinished = change(HASH, "Unknown", creationTimestamp="2026-06-01T10:00:00Z")
    assert not analyses.changes(pipeline(HASH), world(unfinished, second)).actions
    again = change(HASH, creationTimestamp="2026-06-01T12:00:00Z")
    assert not analyses.changes(pipeline(HASH), world(second, again)).actions


def test_old_runs_of_changes_go_and_the_present_one_stays() -> None:
    old = [change(f"{n:064x}"[::-1], creationTimestamp=f"2026-06-01T0{n}:00:00Z") for n in range(6)]
    present = change(HASH, creationTimestamp="2026-06-01T00:00:00Z", status={})
    kept = change(HASH, creationTimestamp=timestamp(NOW + timedelta(hours=1)))
    plan = analyses.changes(pipeline(HASH), world(*old, kept))
    gone = [action.target.name for action in only(plan, Delete)]
    assert gone == [run["metadata"]["name"] for run in old[:3]]
    assert present["metadata"]["name"] not in gone


def test_names_of_runs_fit_and_differ() -> None:
    long, longer = "p" * 60 + "aaa", "p" * 60 + "bbb"
    names = {analyses.change_name(pipeline, HASH) for pipeline in ("syse", long, longer)}
    assert len(names) == 3
    assert max(map(len, names)) <= 63
