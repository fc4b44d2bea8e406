# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import bundles, policies, releases, shares
from shai_operator.reconcile.actions import Create
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.judging import Limits
from shai_operator.reconcile.objects import Object, name, reference
from shai_operator.reconcile.rollout_state import Settings, Step
from shai_operator.reconcile.shares import Share
from tests.reconcile.builders import FOR_SEARCH, OWNED, SEAL, inventory, refused, resource, revision, tenant, written

if TYPE_CHECKING:
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.releases import Definitions


def policy(called: str, text: str = "t1", status: dict[str, Any] | None = None, **spec: Any) -> Object:
    return resource("Policy", called, {"text": text, "mode": "Enforce", **spec}, status)


def task(called: str, taint: str = "", namespace: str = "search", **spec: Any) -> Object:
    content = {"command": ["/bin/true"], **({"taint": {"name": taint}} if taint else {}), **spec}
    return resource("Task", called, content, namespace=namespace)


def pipeline(
    called: str, *, tasks: tuple[str, ...] = ("search",), paths: Any = (), created: int = 0, **more: Any
) -> Object:
    conduit = {"name": "documents", "kind": "file", "paths": [{"path": p, "policy": {"name": n}} for p, n in paths]}
    namespace = more.pop("namespace", "search")
    return resource(
        "Pipeline",
        called,
        {"tasks": list(tasks), "conduits": [conduit], **more},
        namespace=namespace,
        creationTimestamp=f"2026-06-01T12:00:{created:02}Z",
    )


PUBLIC, WORKER = policy("public"), policy("worker")
SYSE = pipeline("syse", paths=[("/public/**", "public")])
WORLD = [PUBLIC, WORKER, revision(PUBLIC), revision(WORKER), task("search", "worker"), SYSE]


def build(*objects: Object, stable: Release | None = None, **problems: Verdict) -> Definitions:
    pool = next((obj for obj in objects if obj["kind"] == "JailPool"), resource("JailPool", "default", FOR_SEARCH))
    stored = {}
    if stable is not None:
        stored[stable.name] = stable
        pool = having(pool, stableRelease=stable.name)
    known = inventory(*objects, pool)
    return releases.build(known, share(pool), refused(pool, known, **problems), stored)


def having(pool: Object, **kept: Any) -> Object:
    """Return a pool whose status has this of namespace search."""
    (before,) = pool["status"].get("namespaces") or [{"name": "search", "uid": tenant("search").uid}]
    return {**pool, "status": {**pool["status"], "namespaces": [before | kept]}}


def share(pool: Object) -> Share:
    return shares.of(pool, inventory()).get(tenant("search"), Share(pool, tenant("search")))


def objects(built: Definitions) -> set[str]:
    assert built.release is not None
    return {f"{kind}/{called}" for kind, called in built.release.objects}


WHOLE = {"Pipeline/syse", "Task/search", "Policy/public", "Policy/worker"}


def test_a_release_has_all_that_its_pipelines_name_and_no_more() -> None:
    built = build(*WORLD, policy("unused"), revision(policy("unused")), task("unused"))
    assert objects(built) == WHOLE
    assert built.release is not None
    assert built.release.revisions == {obj["metadata"]["name"]: policies.revision_name(obj) for obj in (PUBLIC, WORKER)}
    assert (built.namespace, [name(policy) for policy in built.policies]) == ("search", ["public", "worker"])


def test_facts_are_those_of_the_namespace_and_all_principals() -> None:
    built = build(
        *WORLD,
        resource("FactSource", "own", {"inline": []}),
        resource("FactSource", "foreign", {"inline": []}, namespace="other"),
        resource("Principal", "alice", {"publicKey": "00"}),
    )
    assert [manifest["metadata"]["name"] for manifest in built.facts.manifests] == ["own", "alice"]
    assert objects(built) == WHOLE, "facts are not part of a release"


def test_nothing_to_run_is_no_release_before_the_first_and_an_empty_one_after() -> None:
    assert build().release is None
    stable = build(*WORLD).release
    emptied = build(*WORLD[:-1], stable=stable).release
    assert emptied is not None
    assert (emptied.manifests, emptied.namespace) == ((), "search")


def test_rollout_settings_do_not_change_a_release() -> None:
    other = pipeline("syse", paths=[("/public/**", "public")], rollout={"paused": True}, pool="default")
    assert build(*WORLD[:-1], other).release == build(*WORLD).release


# The pipelines of a release.


@pytest.mark.parametrize("created", [0, 1, 59])
def test_a_release_has_nothing_of_another_namespace(created: int) -> None:
    strangers = [
        task("other", namespace="other"),
        pipeline("other", namespace="other", tasks=("other",), created=created),
        resource("FactSource", "theirs", {"inline": []}, namespace="other"),
    ]
    built = build(*WORLD, *strangers)
    assert (objects(built), built.namespace, built.left_out, built.facts.manifests) == (WHOLE, "search", {}, ())
    pool = resource("JailPool", "default", {"allowedNamespaces": {"names": ["search", "other"]}})
    known = inventory(*WORLD, *strangers, pool)
    built = releases.build(known, Share(pool, tenant("other")), refused(pool, known, "other"), {})
    assert (objects(built), built.namespace) == ({"Pipeline/other", "Task/other"}, "other")
    assert [manifest["metadata"]["name"] for manifest in built.facts.manifests] == ["theirs"]


def test_a_pipeline_of_another_pool_is_not_looked_at() -> None:
    assert build(*WORLD, pipeline("other", pool="elsewhere", created=1)).left_out == {}


@pytest.mark.parametrize(
    ("missing", "reason", "said"),
    [
        ("Task/search", "TaskMissing", "no Task search"),
        ("Policy/public", "PolicyMissing", "no Policy public"),
        ("Policy/worker", "PolicyMissing", "no Policy worker"),
        ("PolicyRevision/" + policies.revision_name(PUBLIC), "PolicyMissing", "public has no revision"),
    ],
)
def test_a_pipeline_that_lacks_something_is_left_out_and_the_others_go_on(missing: str, reason: str, said: str) -> None:
    healthy = [task("other"), pipeline("other", tasks=("other",), created=1)]
    left = [obj for obj in WORLD if f"{obj['kind']}/{name(obj)}" != missing]
    built = build(*left, *healthy)
    assert objects(built) == {"Pipeline/other", "Task/other"}
    refusal = built.left_out[reference(SYSE)]
    assert refusal.reason == reason
    assert said in refusal.message


@pytest.mark.parametrize(("overlaps", "reason"), [(False, "Invalid"), (True, "PathConflict")])
def test_a_pipeline_that_the_parser_refuses_is_left_out_with_its_reason(*, overlaps: bool, reason: str) -> None:
    other = pipeline("other", tasks=("other",), created=1)
    built = build(*WORLD, other, task("other"), other=Verdict("line 3", overlaps=overlaps))
    assert objects(built) == WHOLE
    refusal = built.left_out[reference(other)]
    assert (refusal.reason, refusal.message) == (reason, "line 3")


def test_a_pipeline_being_deleted_is_gone() -> None:
    deleted = pipeline("syse", paths=[("/public/**", "public")])
    deleted["metadata"]["deletionTimestamp"] = "2026-06-01T13:00:00Z"
    assert build(*WORLD[:-1], deleted).release is None


# Definitions in force stay in force.


def test_a_broken_pipeline_keeps_running_as_the_stable_release_has_it() -> None:
    stable = build(*WORLD).release
    broken = pipeline("syse", tasks=("search", "serach"), paths=[("/public/**", "public")])
    built = build(*WORLD[:-1], broken, stable=stable)
    assert built.release == stable
    assert built.left_out[reference(broken)].reason == "TaskMissing"


@pytest.mark.parametrize(
    ("mode", "policy_mode", "allowed"),
    [("baseline", "Enforce", "baseline"), ("shai", "Audit", "audit"), ("shai", "Warn", "audit")],
)
def test_what_a_pool_allows_no_longer_does_not_stay(mode: str, policy_mode: str, allowed: str) -> None:
    tried = policy("public", mode=policy_mode)
    own = [tried, revision(tried), task("search"), pipeline("syse", paths=[("/public/**", "public")], mode=mode)]
    lenient = resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": ["shai", allowed]})
    stable = build(*own, lenient).release
    assert stable is not None
    strict = resource("JailPool", "default", FOR_SEARCH)
    built = build(*own, strict, stable=stable)
    assert (objects(built), [condition.reason for condition in built.left_out.values()]) == (set(), ["ModeNotAllowed"])
    broken = pipeline("syse", tasks=("serach",), mode="shai")
    assert objects(build(*own[:-1], broken, strict, stable=stable)) == set(), "nor for one that is broken meanwhile"
    assert build(*own[:-1], broken, lenient, stable=stable).release == stable


def test_a_runtime_that_a_pool_gives_no_longer_is_taken_out_whatever_the_task_says_now() -> None:
    giving = resource("JailPool", "default", {**FOR_SEARCH, "runtimes": [{"name": "java", "paths": ["/usr"]}]})
    barring = resource("JailPool", "default", FOR_SEARCH)
    stable = build(*WORLD[:4], task("search", "worker", runtimeName="java"), SYSE, giving).release
    assert stable is not None
    for now in (task("search", "worker", runtimeName="java"), task("search", "worker"), task("other")):
        assert objects(build(*WORLD[:4], now, SYSE, barring, stable=stable)) == set()
        assert build(*WORLD[:4], now, SYSE, giving, stable=stable).release is not None


def test_a_task_that_lists_the_paths_of_its_runtime_stays_in_force_until_its_pool_gives_runtimes() -> None:
    former = [*WORLD[:4], task("search", "worker", runtime=["/usr"]), SYSE]
    stable = build(*former).release
    built = build(*former, stable=stable, syse=Verdict("a task no longer chooses the paths of its runtime"))
    assert (built.release, built.left_out[reference(SYSE)].reason) == (stable, "Invalid")
    giving = resource("JailPool", "default", {**FOR_SEARCH, "runtimes": [{"name": "java", "paths": ["/usr"]}]})
    assert objects(build(*former, giving, stable=stable)) == set(), "the pool's owner says what tasks execute"


@pytest.mark.parametrize(
    ("mode", "policy_mode", "allowed"),
    [("baseline", "Enforce", "baseline"), ("shai", "Audit", "audit"), ("shai", "Warn", "audit")],
)
def test_what_a_pool_allows_no_longer_is_taken_out_whatever_the_spec_says_now(
    mode: str, policy_mode: str, allowed: str
) -> None:
    tried = policy("public", mode=policy_mode)
    own = [tried, revision(tried), task("search"), pipeline("syse", paths=[("/public/**", "public")], mode=mode)]
    other = [task("other"), pipeline("other", tasks=("other",), created=1)]
    lenient = resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": ["shai", allowed]})
    strict = resource("JailPool", "default", FOR_SEARCH)
    stable = build(*own, *other, lenient).release
    assert stable is not None
    assert releases.forbidden(share(lenient), stable) == frozenset()
    assert releases.forbidden(share(strict), stable) == {"syse"}
    lawful = [PUBLIC, revision(PUBLIC), task("search"), SYSE, policy("worker"), revision(WORKER)]
    changed = [task("other", environment=[]), pipeline("other", tasks=("other",), created=1)]
    left = build(*lawful, *changed, strict, stable=stable).release
    assert left is not None
    assert bundles.withdraws(stable, left), "which no rollout setting holds back"
    assert set(left.objects) == {("Pipeline", "other"), ("Task", "other")}
    assert objects(build(*lawful, *changed, strict, stable=left)) >= {"Pipeline/syse", "Policy/public", "Task/other"}
    assert objects(build(*lawful, *changed, lenient, stable=stable)) >= {"Pipeline/syse"}, "where it is allowed"


def test_an_address_that_is_no_longer_the_pool_s_does_not_stay() -> None:
    web = {"name": "web", "kind": "connection", "listen": "$(HOST):8640", "task": "search"}
    line = resource("Pipeline", "syse", {"tasks": ["search"], "conduits": [web]})
    line["spec"]["variables"] = [{"name": "HOST", "value": "127.0.20.1"}]
    own = {"variables": [{"name": "HOST", "value": "$(MEMBER_ADDRESS)"}]}
    before, after = (resource("JailPool", "default", {**FOR_SEARCH, **more}) for more in (own, {}))
    stable = build(line, task("search"), before).release
    assert stable is not None
    assert build(line, task("search"), before, stable=stable).release == stable
    built = build(line, task("search"), after, stable=stable)
    assert (objects(built), [condition.reason for condition in built.left_out.values()]) == (
        set(),
        ["AddressNotAllowed"],
    )


def including(text: str) -> tuple[Object, Object]:
    """Return a policy that includes another one, with the text that this gives it, and its revision."""
    obj = policy("public", "policy public includes base { }")
    plan = policies.reconcile(
        obj,
        inventory(),
        problem="",
        parameters=(),
        composed=text,
        missing=False,
        used=True,
        seal=SEAL,
        now=datetime(2026, 6, 1, tzinfo=UTC),
    )
    (made,) = (dict(action.body) for action in plan.actions if isinstance(action, Create))
    return {**obj, "status": written(plan)}, made


def test_a_change_of_an_included_policy_rolls_out_those_that_include_it() -> None:
    rest = [WORKER, revision(WORKER), task("search", "worker"), SYSE]
    (before, first), (after, second) = including("policy public { read :- true. }\n"), including("policy public { }\n")
    assert before["spec"] == after["spec"], "it is the other one that has changed"
    stable = build(before, first, *rest).release
    assert stable is not None
    assert stable.objects["Policy", "public"]["spec"]["text"] == "policy public { read :- true. }\n"
    assert releases.holds(stable, SYSE, inventory(before, first, *rest))
    changed = inventory(after, first, second, *rest)
    assert not releases.holds(stable, SYSE, changed)
    candidate = build(after, first, second, *rest, stable=stable).release
    assert candidate is not None
    assert candidate.objects["Policy", "public"]["spec"]["text"] == "policy public { }\n"
    assert bundles.changed_policies(stable, candidate) == ("public",)


def test_a_second_member_takes_out_a_pipeline_with_choices() -> None:
    """Its documents would be under the policies of their paths there, whatever their owners have chosen."""
    chosen = [{"by": "alice", "policy": {"name": "library/private", "arguments": {"owner": "alice"}}}]
    documents = {"name": "documents", "kind": "file", "paths": [{"path": "/a/**", "choices": chosen}]}
    line = resource("Pipeline", "syse", {"tasks": ["search"], "conduits": [documents]})
    one, two = (
        {
            **resource("JailPool", "default", FOR_SEARCH),
            "status": {"members": [{"name": str(i), **OWNED} for i in range(n)]},
        }
        for n in (1, 2)
    )
    stable = build(line, task("search"), one).release
    assert stable is not None
    assert build(line, task("search"), one, stable=stable).release == stable
    built = build(line, task("search"), two, stable=stable)
    assert (objects(built), [condition.reason for condition in built.left_out.values()]) == (
        set(),
        ["ChoicesNotShared"],
    )


def test_what_was_deleted_under_a_pipeline_is_kept_for_it() -> None:
    stable = build(*WORLD).release
    assert build(SYSE, stable=stable).release == stable


def test_another_pipeline_moves_on_beside_a_broken_one() -> None:
    other = pipeline("other", tasks=("other",), created=1)
    stable = build(*WORLD, other, task("other")).release
    broken = pipeline("syse", tasks=("serach",))
    built = build(*WORLD[:-1], broken, other, task("other", environment=[]), stable=stable)
    assert built.release is not None
    assert stable is not None
    changed = {key for key, obj in built.release.objects.items() if stable.objects.get(key) != obj}
    assert changed == {("Task", "other")}


def test_what_a_first_release_has_is_withdrawn_before_it_is_stable() -> None:
    first = build(*WORLD).release
    assert first is not None
    under_way = resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": []})
    under_way = having(under_way, candidateRelease=first.name)
    assert objects(build(*WORLD, under_way)) == set()
    assert build(*WORLD, resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": []})).release is None


@pytest.mark.parametrize("field", ["stableRelease", "candidateRelease", "superseded", "rejectedRelease"])
def test_whatever_members_run_is_withdrawn(field: str) -> None:
    baseline = build(*WORLD[:-1], pipeline("syse", mode="baseline"), allowing("baseline")).release
    assert baseline is not None
    known = {"rollout": {"superseded": baseline.name}} if field == "superseded" else {field: baseline.name}
    stored = {baseline.name: baseline}
    assert releases.withdrawing(share(allowing("shai", **known)), stored) is (field != "rejectedRelease")
    assert not releases.withdrawing(share(allowing("baseline", **known)), stored)
    assert not releases.withdrawing(share(allowing("shai", **known)), {})


def allowing(mode: str, **kept: Any) -> Object:
    return having(resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": [mode]}), **kept)


def test_a_forbidden_candidate_leaves_the_stable_release_and_takes_nothing_from_specs_not_yet_checked() -> None:
    stable = build(*WORLD).release
    candidate = build(*WORLD[:-1], pipeline("syse", mode="baseline"), allowing("baseline")).release
    assert stable is not None
    assert candidate is not None
    pool = allowing("shai", stableRelease=stable.name, candidateRelease=candidate.name)
    known = inventory(pipeline("syse", tasks=("unknown",)), pool)
    assert releases.build(known, share(pool), None, {r.name: r for r in (stable, candidate)}).release == stable
    pool = allowing("shai", stableRelease=stable.name)
    assert releases.build(known, share(pool), None, {stable.name: stable}).release == stable


def test_members_that_run_a_release_which_nothing_names_let_go_of_it() -> None:
    rows = {"members": [{"name": "default-0", "ordinal": 0, "release": "forgotten", **OWNED}]}
    assert objects(build(*WORLD, resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": []}, rows))) == set()
    rows["members"][0]["release"] = ""
    assert build(*WORLD, resource("JailPool", "default", {**FOR_SEARCH, "allowedModes": []}, rows)).release is None


# The revisions of a release.

FIRST, SECOND, THIRD = (policy("public", text) for text in ("t1", "t2", "t3"))
NAMES = [policies.revision_name(obj) for obj in (FIRST, SECOND, THIRD)]


@pytest.mark.parametrize(
    ("stable", "rejected", "known", "effective"),
    [
        ("", "", (1, 2), None),  # the text is invalid or not yet checked, and no revision has been in force
        ("", "", (1, 2, 3), 3),
        (1, "", (1, 2, 3), 3),
        (1, 3, (1, 2, 3), 1),  # rolled back
        (1, 2, (1, 2, 3), 3),  # corrected after that
        (1, "", (1, 2), 1),  # not yet checked: nothing changes
        (3, "", (1, 2), None),  # the revision in force was deleted: no older text replaces it
        (2, 3, (1, 3), None),
        ("", 3, (3,), None),
        ("", "", (), None),
    ],
)
def test_the_effective_revision(stable: Any, rejected: Any, known: tuple[int, ...], effective: int | None) -> None:
    status = {"stableRevision": stable and NAMES[stable - 1], "rejectedRevision": rejected and NAMES[rejected - 1]}
    present = policy("public", "t3", status)
    all_known = inventory(present, *(revision((FIRST, SECOND, THIRD)[number - 1], number) for number in known))
    found = policies.effective_revision(present, all_known)
    assert (found and name(found)) == (effective and NAMES[effective - 1])
    assert policies.is_held(present) is (rejected == 3)


def test_a_rolled_back_policy_is_in_the_release_as_it_was_before() -> None:
    status = {"stableRevision": NAMES[0], "rejectedRevision": NAMES[1]}
    held = policy("public", "t2", status)
    built = build(held, revision(FIRST), revision(SECOND, 2), *WORLD[1:2], *WORLD[3:])
    assert built.release is not None
    assert built.release.objects["Policy", "public"]["spec"] == {"text": "t1", "mode": "Enforce"}
    assert built.held == ("public",)


# Settings.


def settings(*pipelines: Object, changed: tuple[str, ...] = (), public: Object = PUBLIC) -> Settings:
    built = build(public, revision(public), WORKER, revision(WORKER), task("search"), *pipelines)
    return releases.settings(built, changed)


def test_nothing_said_is_the_default() -> None:
    assert settings(SYSE) == Settings() == Settings((Step(1), Step("100%")), Limits(5, 50, 50, 20), paused=False)


def rollout(called: str, **rollout: Any) -> Object:
    return pipeline(called, paths=[(f"/{called}/**", "public")], rollout=rollout)


def test_the_last_step_is_always_all() -> None:
    found = settings(rollout("a", steps=[{"members": 2, "pauseSeconds": 0}, {"members": "50%", "pauseSeconds": 7}]))
    assert found.steps == (Step("2", 0), Step("50%", 7), Step("100%", 7))


def test_of_several_pipelines_the_most_careful_counts() -> None:
    found = settings(
        rollout("a", steps=[{"members": "50%"}], limits={"denialsPercent": 1, "minimumSessions": 5}),
        rollout("b", steps=[{"members": 1}], limits={"closedPercent": 7, "minimumSessions": 50}, paused=True),
    )
    assert found == Settings((Step("1"), Step("100%")), Limits(1, 50, 7, 50), paused=True)


def test_a_changed_policy_s_steps_replace_the_pipelines() -> None:
    public = policy("public", rollout={"steps": [{"members": "100%", "pauseSeconds": 5}]})
    assert settings(rollout("a", steps=[{"members": 1}]), public=public).steps[0] == Step("1")
    assert settings(rollout("a", steps=[{"members": 1}]), public=public, changed=("public",)).steps == (
        Step("100%", 5),
    )


def test_many_policies_are_gathered_in_reasonable_time() -> None:
    many = [policy(f"p{number}") for number in range(500)]
    paths = [[(f"/{line}/{number}/**", f"p{number}") for number in range(line, 500, 50)] for line in range(50)]
    lines = [pipeline(f"l{number}", paths=paths[number]) for number in range(50)]
    built = build(*many, *map(revision, many), task("search"), *lines)
    assert built.release is not None
    assert len(built.release.manifests) == 551
