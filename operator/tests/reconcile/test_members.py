# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import bundles, member_rows, members, upkeep
from shai_operator.reconcile.bundles import Bundle
from shai_operator.reconcile.members import (
    ApplyBundle,
    BringUp,
    Failure,
    Job,
    Monitor,
    Observation,
    PipelineTasks,
    Place,
    Progress,
    Standing,
)
from shai_operator.reconcile.upkeep import Care, Kept
from tests.reconcile.builders import resource

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TASKS = [
    resource("Task", "indexer", {"run": "Once"}),
    resource("Task", "search", {"run": "Always"}),
    resource("Task", "worker", {}),
    resource("Pipeline", "syse", {"tasks": ["search", "indexer", "worker"]}),
]
RELEASE = bundles.release("default", "search", map(bundles.manifest, TASKS), {})
BUNDLE = Bundle(RELEASE, bundles.facts([]))
KNOWN = {RELEASE.name: RELEASE}
RUNNING = {("syse", "indexer"): "Succeeded", ("syse", "search"): "Running", ("syse", "worker"): "Running"}


def monitor(**more: Any) -> Monitor:
    known = {"ready": True, "bundle": BUNDLE.label, "tasks": RUNNING, "analyzed": frozenset({"syse"})}
    return Monitor(**{**known, **more})


def member(**more: Any) -> Observation:
    known = {"configuration": "c1", "host": "h1", "monitor": monitor()}
    return Observation("default-0", 0, **{**known, **more})


def failure(reason: str = "PlaybookFailed", attempts: int = 1, *, removal: bool = False) -> Failure:
    return Failure(reason, f"{reason} happened", NOW, attempts, removal=removal)


# Standing.


@pytest.mark.parametrize(
    ("seen", "ready", "reason"),
    [
        (member(), True, "Ready"),
        (member(monitor=None, unreachable="connection refused"), False, "Unreachable"),
        (member(monitor=monitor(ready=False, reason="rebuilding")), False, "MonitorNotReady"),
        (member(monitor=monitor(tasks=None)), False, "Starting"),
        (member(monitor=monitor(tasks={**RUNNING, ("syse", "worker"): "Failed"})), False, "Starting"),
        (member(monitor=monitor(tasks={**RUNNING, ("syse", "indexer"): "Running"})), False, "Starting"),
        (member(monitor=monitor(tasks={("syse", "worker"): "Running"})), False, "Starting"),
        (
            member(monitor=monitor(tasks={}), bring_up_failed=failure("TaskFailed")),
            False,
            "TaskFailed",
        ),
        (member(bring_up_failed=failure("AnalysisFailed")), True, "Ready"),  # it serves nevertheless
        (member(monitor=monitor(bundle="", tasks={})), True, "BundlePending"),
        (member(monitor=monitor(bundle="0" * 30 + "." + "0" * 30)), True, "BundlePending"),
        (member(monitor=monitor(bundle=""), refused={BUNDLE.label: failure("BundleRefused")}), True, "BundleRefused"),
        (member(configuration="", monitor=None), False, "Provisioning"),
        (member(job=Job("provision")), False, "Provisioning"),
        (member(configuration="", monitor=None, failed=failure()), False, "PlaybookFailed"),
        (member(failed=failure()), True, "PlaybookFailed"),  # an update that failed: the old configuration serves
        (member(draining_since=NOW), False, "Draining"),
        (member(job=Job("remove")), False, "Draining"),
        (member(draining_since=NOW, failed=failure("HostUnreachable", removal=True)), False, "HostUnreachable"),
        (member(draining_since=NOW, failed=failure("GuestUnreachable")), False, "Draining"),  # an installation's
    ],
)
def test_standing(seen: Observation, reason: str, *, ready: bool) -> None:
    found = members.standing(seen, KNOWN, BUNDLE.label)
    assert (found.ready, found.reason) == (ready, reason)
    assert bool(found.message) is (reason != "Ready")


@pytest.mark.parametrize("kind", ["provision", "remove"])
def test_who_waits_for_a_host_says_so(kind: str) -> None:
    who = "waits for its turn on host h1, which JailPool other, an installation has"
    said = members.standing(member(job=Job(kind, waiting=who)), KNOWN, BUNDLE.label).message
    assert said.endswith("; it waits for its turn on its host"), "authors read it, who know no other pools"
    assert "waits" not in members.standing(member(job=Job(kind)), KNOWN, BUNDLE.label).message


def test_the_tasks_of_a_release_are_in_the_order_of_their_start() -> None:
    assert members.tasks(RELEASE) == (
        PipelineTasks("syse", ("indexer",), ("search", "worker"), "search", {"indexer": frozenset()}),
    )


def test_tasks_that_others_become_are_not_started() -> None:
    drafting = resource("Task", "drafting", {"run": "Once", "raisesTo": ["personal"]})
    pipeline = resource("Pipeline", "p", {"tasks": ["drafting", "personal", "sealed"]})
    objects = [
        drafting,
        resource("Task", "personal", {"raisesTo": ["sealed"]}),
        resource("Task", "sealed", {}),
        pipeline,
    ]
    release = bundles.release("default", "p", map(bundles.manifest, objects), {})
    assert members.tasks(release) == (PipelineTasks("p", ("drafting",), (), "p", {"drafting": frozenset()}),)


# Rows.

LABELS = st.sampled_from(["", BUNDLE.label])


@given(
    st.builds(
        Observation,
        name=st.just("default-3"),
        ordinal=st.integers(0, 255),
        host=st.sampled_from(["", "h1"]),
        address=st.sampled_from(["", "127.0.10.4"]),
        configuration=st.sampled_from(["", "c" * 64]),
        image=st.sampled_from(["", "i" * 64]),
        certificate_ends=st.none() | st.just(NOW),
        bundle=LABELS,
        draining_since=st.none() | st.just(NOW),
        job=st.none() | st.just(Job("provision", Progress("provision", "Install", 3, 12))),
    )
)
def test_a_row_remembers_what_the_operator_must_not_forget(seen: Observation) -> None:
    standing = members.standing(seen, KNOWN, "")
    read = member_rows.from_row(member_rows.row(seen, standing))
    assert read == replace(seen, job=None, reason=standing.reason)


def test_a_row_shows_what_is_seen() -> None:
    busy = member(job=Job("provision", Progress("provision", "Install", 3, 12)), monitor=monitor(sessions=7))
    row = member_rows.row(busy, Standing(ready=False, reason="Provisioning", message="x" * 5000))
    assert (row["ready"], row["sessions"], row["release"]) == ("False", 7, RELEASE.name)
    assert row["progress"] == {"play": "provision", "task": "Install", "done": 3, "total": 12}
    assert len(row["message"]) == 1024
    assert "drainingSince" not in row


def test_a_failure_is_tried_again_less_and_less_often() -> None:
    delays = [(failure(attempts=number).retry_at() - NOW).total_seconds() for number in (1, 2, 3, 7, 8, 999)]
    assert delays == [10, 20, 40, 600, 600, 600]


# Which members should exist.


def members_at(*numbers: int, **more: Any) -> list[Observation]:
    return [replace(member(**more), name=f"default-{number}", ordinal=number) for number in numbers]


DRAINING = {"draining_since": NOW}
DOWN = {"monitor": None}


@pytest.mark.parametrize(
    ("known", "replicas", "unready_first", "chosen"),
    [
        ([], 3, False, (0, 1, 2)),
        (members_at(0, 1, 2), 3, False, (0, 1, 2)),
        (members_at(0, 1, 2), 1, False, (0,)),
        (members_at(0, 1, 2), 0, False, ()),
        (members_at(1, 2), 3, False, (0, 1, 2)),  # a gap is filled
        ([*members_at(0, **DOWN), *members_at(1, 2)], 2, False, (0, 1)),
        ([*members_at(0, **DOWN), *members_at(1, 2)], 2, True, (1, 2)),
        ([*members_at(0, 1), *members_at(2, **DRAINING)], 3, False, (0, 1, 2)),  # not yet removed: it stays
        ([*members_at(0, 1), *members_at(2, **DRAINING)], 2, False, (0, 1)),
        # its removal has started
        ([*members_at(0, 1), *members_at(2, configuration="", **DRAINING)], 3, False, (0, 1, 3)),
        ([*members_at(0, 1), *members_at(2, job=Job("remove"), **DRAINING)], 3, False, (0, 1, 3)),
        ([*members_at(0, 1), *members_at(3, **DRAINING)], 4, False, (0, 1, 2, 3)),
    ],
)
def test_ordinals(known: list[Observation], replicas: int, chosen: tuple[int, ...], *, unready_first: bool) -> None:
    assert upkeep.ordinals(Care(replicas=replicas, unready_first=unready_first), known) == chosen


@given(
    drawn=st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), unique_by=lambda fields: fields[0]),
    replicas=st.integers(0, 12),
    unready_first=st.booleans(),
)
def test_there_are_always_as_many_as_wanted(
    drawn: list[tuple[int, bool, bool]], replicas: int, *, unready_first: bool
) -> None:
    known = [
        seen
        for number, alive, draining in drawn
        for seen in members_at(number, **({} if alive else DOWN), **(DRAINING if draining else {}))
    ]
    chosen = upkeep.ordinals(Care(replicas=replicas, unready_first=unready_first), known)
    assert len(chosen) == len(set(chosen)) == replicas
    staying = {seen.ordinal for seen in known if not seen.draining_since}
    assert set(chosen) <= staying or staying <= set(chosen), "nobody goes while another comes"


@pytest.mark.parametrize(
    ("limit", "replicas", "number"), [(1, 3, 1), ("50%", 3, 1), ("50%", 4, 2), ("1%", 3, 1), (5, 3, 5)]
)
def test_a_share_that_may_be_away_is_rounded_down_to_at_least_one(limit: Any, replicas: int, number: int) -> None:
    assert Care(replicas=replicas, max_unavailable=limit).unavailable == number


# Installing.


def kept(number: int, digest: str = "c1", *, place: bool = True, **more: Any) -> Kept:
    (seen,) = members_at(number, **more)
    standing = members.standing(seen, KNOWN, "")
    location = Place(seen.name, number, f"h{number % 2}", f"10.0.0.{number}") if place else None
    return Kept(seen, standing, location, digest, BUNDLE)


NEW: dict[str, Any] = {"configuration": "", "monitor": None}


def provisioned(*given: Kept, guarded: Any = (), **care: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    wanted = Care(replicas=len(given), **care)
    return [
        (action.cause, action.host, tuple(place.ordinal for place in action.members))
        for action in upkeep.provision(given, wanted, guarded, NOW)
    ]


def test_new_members_are_installed_at_once_one_run_a_host() -> None:
    assert provisioned(*(kept(number, **NEW) for number in range(4))) == [("new", "h0", (0, 2)), ("new", "h1", (1, 3))]


@pytest.mark.parametrize(
    "quiet",
    [
        kept(0),  # nothing to do
        kept(0, **NEW, job=Job("provision")),
        kept(0, **NEW, failed=failure()),  # before the time of the next attempt
        kept(0, place=False, **NEW),
        kept(0, digest="", **NEW),  # its configuration is not available
        kept(0, monitor=None, failures=2),
    ],
)
def test_nothing_is_installed_without_need(quiet: Kept) -> None:
    assert provisioned(quiet) == []


@pytest.mark.parametrize(
    ("job", "goes"), [("bringUp", True), ("provision", False), ("remove", False), ("apply", False)]
)
@pytest.mark.parametrize(
    ("due", "cause"),
    [
        ({"digest": "c2"}, "changed"),
        ({"certificate_ends": NOW}, "certificate due"),
        ({"monitor": None, "failures": 3}, "not answering"),
    ],
)
def test_a_bring_up_that_may_never_end_holds_no_installation(due: Any, cause: str, job: str, *, goes: bool) -> None:
    assert provisioned(kept(0, job=Job(job), **due)) == ([(cause, "h0", (0,))] if goes else [])


def test_a_failed_installation_is_tried_again_in_time() -> None:
    long_ago = replace(failure(), at=NOW - timedelta(seconds=10))
    assert provisioned(kept(0, **NEW, failed=long_ago)) == [("new", "h0", (0,))]


def test_changes_go_through_a_pool_a_few_at_a_time() -> None:
    outdated = [kept(number, digest="c2") for number in range(4)]
    assert provisioned(*outdated) == [("changed", "h0", (0,))]
    assert provisioned(*outdated, max_unavailable="50%") == [("changed", "h0", (0,)), ("changed", "h1", (1,))]
    assert provisioned(*outdated[:3], kept(3, job=Job("provision"))) == []
    assert provisioned(*outdated[:3], kept(3, monitor=None)) == [], "one that is away for another reason counts too"
    assert provisioned(*outdated[:3], kept(3, **NEW)) == [("changed", "h0", (0,)), ("new", "h1", (3,))]


def test_certificates_are_renewed_before_they_end_a_few_at_a_time() -> None:
    fresh, due = NOW + timedelta(days=30), NOW + timedelta(days=29)
    assert provisioned(kept(0, certificate_ends=fresh), kept(1)) == []
    aging = [kept(number, certificate_ends=due) for number in range(3)]
    assert provisioned(*aging) == [("certificate due", "h0", (0,))]
    assert provisioned(*aging, max_unavailable=2) == [("certificate due", "h0", (0,)), ("certificate due", "h1", (1,))]


def test_a_member_that_is_away_is_changed_first() -> None:
    assert provisioned(kept(0, digest="c2"), kept(1, digest="c2", monitor=None)) == [("changed", "h1", (1,))]


def test_the_last_member_on_the_stable_release_is_not_taken_away() -> None:
    outdated = [kept(number, digest="c2") for number in range(2)]
    assert provisioned(*outdated, guarded=[frozenset({"default-0"})]) == [("changed", "h1", (1,))]
    guarded = [frozenset({"default-0", "default-1"})]
    assert provisioned(*outdated, guarded=guarded, max_unavailable=2) == [("changed", "h0", (0,))]
    each = [frozenset({"default-0"}), frozenset({"default-1"})]
    assert provisioned(*outdated, guarded=each, max_unavailable=2) == [], "each namespace keeps one of its own"


@pytest.mark.parametrize(
    ("failures", "healed", "mended"), [(2, 0, False), (3, 0, True), (5, 1, False), (6, 1, True), (191, 99, False)]
)
def test_a_member_that_does_not_answer_is_mended_each_time_later(failures: int, healed: int, *, mended: bool) -> None:
    dead = kept(0, monitor=None, failures=failures, healed=healed)
    assert provisioned(dead) == ([("not answering", "h0", (0,))] if mended else [])


# Removing.


@pytest.mark.parametrize(
    ("leaving", "goes"),
    [
        ({"draining_since": NOW - timedelta(seconds=29), "monitor": monitor(sessions=1)}, False),
        ({"draining_since": NOW - timedelta(seconds=30), "monitor": monitor(sessions=1)}, True),
        ({"draining_since": NOW, "monitor": monitor(sessions=0)}, True),
        ({"draining_since": NOW, "monitor": None}, True),
        ({"draining_since": NOW, "monitor": None, "job": Job("provision")}, False),
        ({"draining_since": NOW, "monitor": monitor(sessions=0), "job": Job("bringUp")}, True),
        ({"draining_since": NOW, "monitor": None, "failed": failure(removal=True)}, False),
        ({"draining_since": NOW, "monitor": None, "failed": failure()}, True),
    ],
)
def test_a_member_is_removed_when_its_sessions_are_over_or_out_of_time(leaving: Any, *, goes: bool) -> None:
    (seen,) = members_at(3, **leaving)
    removals = list(upkeep.remove([seen], Care(drain_seconds=30), NOW))
    assert [place.ordinal for removal in removals for place in removal.members] == ([3] if goes else [])
    (after,) = upkeep.forget_configuration([seen], removals)
    assert after.configuration == ("" if goes else "c1")


# Serving.

IDLE = monitor(tasks={**RUNNING, ("syse", "worker"): "Stopped"})
BRING_UP = BringUp(member().place, members.tasks(RELEASE))


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        (member(), None),
        (member(monitor=monitor(bundle="")), ApplyBundle(member().place, BUNDLE)),
        (member(monitor=monitor(bundle=""), refused={BUNDLE.label: failure()}), None),
        (member(monitor=monitor(bundle=""), refused={"another": failure()}), ApplyBundle(member().place, BUNDLE)),
        (member(monitor=IDLE), BRING_UP),
        (member(monitor=monitor(analyzed=frozenset())), BRING_UP),
        (member(monitor=IDLE, bring_up_failed=failure()), None),
        (member(monitor=IDLE, job=Job("bringUp")), None),
        (member(monitor=monitor(bundle=""), job=Job("bringUp")), ApplyBundle(member().place, BUNDLE)),
        (member(monitor=monitor(bundle=""), job=Job("apply")), None),
        (member(monitor=None), None),
        (member(configuration="", monitor=monitor(bundle="")), None),
    ],
)
def test_serving(seen: Observation, action: ApplyBundle | BringUp | None) -> None:
    entry = Kept(seen, Standing(ready=True, reason="", message=""), seen.place, "c1", BUNDLE)
    assert upkeep.serve(entry, NOW) == action


def test_what_was_refused_is_tried_again_in_time() -> None:
    seen = member(monitor=monitor(bundle=""), refused={BUNDLE.label: failure(attempts=2)})
    entry = Kept(seen, Standing(ready=True, reason="", message=""), seen.place, "c1", BUNDLE)
    assert upkeep.waits([seen], Care(), NOW) == 20
    assert isinstance(upkeep.serve(entry, NOW + timedelta(seconds=20)), ApplyBundle)


def test_care_reads_the_spec_and_knows_the_defaults() -> None:
    assert upkeep.care({}) == Care(1, 1, unready_first=False, drain_seconds=30, failure_threshold=3)
    spec = {
        "replicas": 4,
        "update": {"maxUnavailable": "50%"},
        "scaleIn": {"policy": "UnreadyFirst", "drainSeconds": 0},
        "healing": {"failureThreshold": 7},
    }
    assert upkeep.care(spec) == Care(4, "50%", unready_first=True, drain_seconds=0, failure_threshold=7)
