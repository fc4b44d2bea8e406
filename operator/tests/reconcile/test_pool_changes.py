# SPDX-License-Identifier: BSD-2-Clause
"""Changed definitions in the simulated world of a pool: rolled out, held, rolled back, kept."""

from __future__ import annotations

import json

import pytest

from shai_operator.reconcile import policies
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.bundles import Bundle
from shai_operator.reconcile.members import ApplyBundle, Failure
from shai_operator.reconcile.objects import Reference, name, reference
from shai_operator.reconcile.pools import ForgetReleases, StoreRelease
from tests.reconcile.builders import FOR_SEARCH, resource
from tests.reconcile.pool_world import World, first_under_way, kinds, revision, settled

# A policy changes.


def test_a_change_goes_through_in_steps() -> None:
    world = settled()
    world.define("two")
    seen = []
    for _ in range(20):
        world.settle(1)
        if world.texts() not in seen:
            seen.append(world.texts())
    assert seen == [["one"] * 3, ["two", "one", "one"], ["two"] * 3]
    assert world.of("Policy", "public")["stableRevision"] == revision("two")
    assert "candidateRevision" not in world.of("Policy", "public")
    assert len(world.stored) == 1, "releases that nothing needs are forgotten"


def test_the_change_s_effect_and_progress_are_on_the_pipeline_and_the_policy() -> None:
    world = settled()
    world.define("two")
    world.settle(3)
    pipeline, policy = world.of("Pipeline", "syse"), world.of("Policy", "public")
    assert pipeline["effect"]["usersTotal"] == 3
    assert (pipeline["rollout"]["step"], pipeline["rollout"]["steps"], pipeline["rollout"]["members"]) == (1, 2, 1)
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Progressing")
    assert (policy["stableRevision"], policy["candidateRevision"]) == (revision("one"), revision("two"))
    assert world.share()["candidateRelease"] == pipeline["rollout"]["release"]
    world.effects = {}  # the operator crashes
    world.settle(1)
    assert world.of("Pipeline", "syse")["effect"]["usersTotal"] == 3


def test_a_change_that_closes_too_much_is_held() -> None:
    world = settled()
    world.closed = 90
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    for kind, called in (("Pipeline", "syse"), ("Policy", "public")):
        assert world.condition(kind, called, "RolledOut") == ("False", "BlocksFlows")
    assert world.of("Pipeline", "syse")["effect"]["closedTotal"] == 90
    assert [event.reason for event in world.events] == ["BlocksFlows"]
    world.change("Pipeline", "syse", rollout={"limits": {"closedPercent": 95, "minimumSessions": 0}})
    world.settle()
    assert world.texts() == ["two"] * 3


@pytest.mark.parametrize("fault", ["denies", "refuses"])
def test_a_harmful_change_goes_back_and_the_revision_is_rejected(fault: str) -> None:
    world = settled()
    getattr(world, fault).add("two")
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    policy = world.of("Policy", "public")
    assert (policy["stableRevision"], policy["rejectedRevision"]) == (revision("one"), revision("two"))
    assert world.share()["rejectedRelease"] not in ("", world.share()["stableRelease"])
    for kind, called in (("Pipeline", "syse"), ("Policy", "public")):
        assert world.condition(kind, called, "RolledOut") == ("False", "RolledBack")
    assert "RolledBack" in [event.reason for event in world.events]
    spec = world.known.find("Policy", "search", "public")
    assert spec is not None
    assert spec["spec"]["text"] == "two", "a rollback never changes a spec"
    world.define("three")
    world.settle()
    assert world.texts() == ["three"] * 3
    assert "rejectedRevision" not in world.of("Policy", "public")
    assert "rejectedRelease" not in world.share()


def test_a_member_that_could_not_take_a_change_for_another_reason_has_not_refused_it() -> None:
    """Its monitor was stopped meanwhile, or a source of facts did not answer."""
    world = settled()
    world.define("two")
    world.look()  # compares
    for passing, reason in ((True, "Progressing"), (False, "RolledBack")):
        refused = Failure("BundleRefused", "context canceled", world.now, passing=passing)
        world.machines["default-0"].refused = {candidate_label(world): refused}
        plan = world.plan()
        statuses = [
            action for action in plan.actions if isinstance(action, SetStatus) and action.obj["kind"] == "Pipeline"
        ]
        (found,) = [entry["reason"] for entry in statuses[0].status["conditions"] if entry["type"] == "RolledOut"]
        assert found == reason


def candidate_label(world: World) -> str:
    """Return the label of the bundle that is being rolled out."""
    release, former = world.stored[world.share()["candidateRelease"]], world.machines["default-0"].bundle
    assert former is not None
    return Bundle(release, former.facts).label


def test_revisions_are_rejected_before_the_pool_forgets_the_candidate() -> None:
    world = settled()
    world.denies.add("two")
    world.define("two")
    world.settle()
    order = kinds(world.trail)
    rejected = next(
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus) and "rejectedRevision" in action.status
    )
    forgotten = next(
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus) and "rejectedRelease" in json.dumps(action.status.get("namespaces"))
    )
    assert rejected < forgotten
    assert order[rejected] == "SetStatus Policy public"
    back = [index for index, action in enumerate(world.trail) if isinstance(action, ApplyBundle) and index > rejected]
    assert back
    assert min(back) > forgotten


def test_a_rejected_change_of_a_task_is_not_tried_again() -> None:
    world = settled()
    world.change("Task", "search", command=["/bin/other"])
    world.look()
    candidate = world.share()["candidateRelease"]
    world.harmful.add(candidate)
    world.settle()
    assert world.share()["rejectedRelease"] == candidate
    assert "candidateRelease" not in world.share()
    assert {machine.bundle.release.name for machine in world.machines.values() if machine.bundle} == {
        world.share()["stableRelease"]
    }
    assert "rejectedRevision" not in world.of("Policy", "public"), "no policy has changed"


def test_paused_holds_and_goes_on() -> None:
    world = settled()
    rollout = world.known.find("Pipeline", "search", "syse")["spec"]["rollout"]  # type: ignore[index]
    world.change("Pipeline", "syse", rollout={**rollout, "paused": True})
    world.define("two")
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Paused")
    world.change("Pipeline", "syse", rollout=rollout)
    world.settle()
    assert world.texts() == ["two"] * 3


# Facts, and pipelines that cannot run or are deleted.


def test_facts_reach_everybody_at_once_and_start_no_rollout() -> None:
    world = settled()
    stable = world.share()["stableRelease"]
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.look()
    applied = [action for action in world.trail if isinstance(action, ApplyBundle)]
    assert len(applied) == 3
    world.settle(2)
    assert world.share()["stableRelease"] == stable
    assert "candidateRelease" not in world.share()
    assert {len(machine.bundle.facts.manifests) for machine in world.machines.values() if machine.bundle} == {1}


def test_facts_reach_members_that_are_leaving() -> None:
    world = settled(replicas=3, scaleIn={"drainSeconds": 600})
    for machine in world.machines.values():
        machine.sessions = 1
    world.change("JailPool", "default", replicas=2)
    world.settle(2)
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.settle(2)
    assert len(world.machines) == 3
    assert {len(machine.bundle.facts.manifests) for machine in world.machines.values() if machine.bundle} == {1}


def test_bad_facts_are_not_blamed_on_a_change() -> None:
    world = settled()
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.refuses.add("one")  # with these facts, monitors refuse every release
    world.refuses.add("two")
    world.define("two")
    world.settle(90)
    assert world.texts() == ["one"] * 3
    assert "rejectedRevision" not in world.of("Policy", "public")
    assert world.condition("JailPool", "default", "Ready")[0] in ("True", "False")
    world.refuses.clear()
    world.settle(60)
    assert world.texts() == ["two"] * 3


def test_facts_that_turn_bad_during_a_step_are_not_blamed_on_the_change() -> None:
    world = settled()
    world.define("two")
    world.look()  # compares
    world.put(resource("Principal", "alice", {"publicKey": "00"}))
    world.refuses = {"one", "two"}
    world.settle(30)
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "Progressing")
    world.refuses.clear()
    world.settle(60)
    assert world.texts() == ["two"] * 3


def test_a_broken_pipeline_stays_in_force() -> None:
    world = settled()
    world.change("Pipeline", "syse", tasks=["search", "serach"])
    world.settle(5)
    assert world.texts() == ["one"] * 3
    assert [action for action in world.trail if isinstance(action, ApplyBundle)] == []


def test_a_pipeline_that_is_deleted_leaves_the_members_at_once() -> None:
    world = settled()
    pipeline = world.known.find("Pipeline", "search", "syse")
    assert pipeline is not None
    world.known.remove(reference(pipeline))
    world.settle(3)
    assert [machine.bundle.release.manifests for machine in world.machines.values() if machine.bundle] == [()] * 3
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady")


def test_a_deleted_pipeline_that_a_finalizer_keeps_is_not_said_to_run() -> None:
    world = settled()
    assert world.of("Pipeline", "syse")["members"] == 3
    pipeline = world.known.find("Pipeline", "search", "syse")
    assert pipeline is not None
    metadata = {"deletionTimestamp": "2026-03-01T00:00:00Z", "finalizers": ["example.com/stay"]}
    world.put({**pipeline, "metadata": {**pipeline["metadata"], **metadata}})
    world.settle(3)
    assert [machine.bundle.release.manifests for machine in world.machines.values() if machine.bundle] == [()] * 3
    assert "members" not in world.of("Pipeline", "syse")
    for kind, called in (("Pipeline", "syse"), ("Policy", "public")):
        assert world.of(kind, called)["conditions"] == []


# A slip before the first release is stable.


SLIPS = {
    "a task that does not exist": lambda world: world.change("Pipeline", "syse", tasks=["serach"]),
    "a text not yet checked": lambda world: world.change("Policy", "public", text="two"),
    "a deleted revision": lambda world: world.known.remove(Reference("PolicyRevision", "search", revision("one"))),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_during_the_first_rollout_stops_nothing(slip: str) -> None:
    world = first_under_way()
    candidate = world.share()["candidateRelease"]
    SLIPS[slip](world)
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.share()["stableRelease"] == candidate
    world = first_under_way()
    SLIPS[slip](world)
    world.known.remove(Reference("Pipeline", "search", "syse"))
    world.settle()
    assert world.texts() == [""] * 3, "a pipeline that is deleted goes"


# What the status of a policy says.


def test_a_text_whose_revision_has_the_name_of_another_is_never_said_to_be_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "content_hash", lambda policy: "ab" * 16 + policy["spec"]["text"].encode().hex())
    world = settled()
    assert world.condition("Policy", "public", "RolledOut") == ("True", "Complete")
    world.put(resource("Policy", "public", {"text": "two", "mode": "Enforce"}))  # no revision can have its name
    world.settle()
    assert world.texts() == ["one"] * 3
    assert world.condition("Policy", "public", "RolledOut")[0] == "False"


def test_a_policy_s_status_has_one_writer() -> None:
    world = settled()
    other = resource(
        "Pipeline", "other", {"tasks": ["search"], "pool": "second"}, creationTimestamp="2026-01-01T00:00:00Z"
    )
    conduits = world.known.find("Pipeline", "search", "syse")["spec"]["conduits"]  # type: ignore[index]
    world.put({**other, "spec": {**other["spec"], "conduits": conduits}})

    def written() -> list[str]:
        return [name(action.obj) for action in world.plan().actions if isinstance(action, SetStatus)]

    assert "public" in written(), "a pipeline without a pool that it may use has no say"
    world.put(resource("JailPool", "second", FOR_SEARCH))
    assert "public" not in written(), "the older pipeline's pool writes it"


# Large definitions, and stored releases.


def test_definitions_that_cannot_be_kept_are_not_rolled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled()
    monkeypatch.setattr("shai_operator.reconcile.bundles.SIZE_LIMIT", 10)
    world.define("two")
    actions = world.plan().actions
    assert not [action for action in actions if isinstance(action, StoreRelease | ApplyBundle)]
    world.look()
    assert world.condition("Pipeline", "syse", "RolledOut") == ("False", "TooLarge")


def test_a_lost_release_is_stored_again() -> None:
    world = settled()
    world.stored.clear()
    world.look()
    assert set(world.stored) == {world.share()["stableRelease"]}


def test_releases_are_forgotten_only_after_the_status_names_others() -> None:
    world = settled()
    world.define("two")
    world.settle()
    forgotten = [index for index, action in enumerate(world.trail) if isinstance(action, ForgetReleases)]
    promoted = [
        index
        for index, action in enumerate(world.trail)
        if isinstance(action, SetStatus)
        and world.share()["stableRelease"] in json.dumps(action.status.get("namespaces"))
    ]
    assert forgotten
    assert min(promoted) < min(forgotten)
