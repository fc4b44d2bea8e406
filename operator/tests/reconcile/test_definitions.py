# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shai_operator.reconcile import definitions, dependents, policies, references
from shai_operator.reconcile.actions import Emit, SetStatus
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import Inventory, Reference, reference
from tests.reconcile.builders import genuine, revision, space, tenant, valid

NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICIES = ("public", "internal", "index", "worker", "spare")


def resource(
    kind: str, name: str, namespace: str = "search", created: str = "2026-01-01T00:00:00Z", **spec: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "creationTimestamp": created}
    if kind in {"JailPool", "Principal"}:
        del metadata["namespace"]
    return {"apiVersion": "shai.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def pipeline(name: str = "syse", namespace: str = "search", **more: Any) -> dict[str, Any]:
    conduits = [
        {"name": "documents", "kind": "file", "paths": [{"path": "/a/**", "policy": {"name": "public"}}]},
        {"name": "queries", "kind": "pipe", "policy": {"name": "internal"}},
    ]
    spec = {"pool": "main", "tasks": ["indexer", "worker"], "conduits": conduits}
    created = more.pop("created", "2026-01-01T00:00:00Z")
    return resource("Pipeline", name, namespace, created, **{**spec, **more})


def policy(name: str, mode: str = "Enforce") -> dict[str, Any]:
    return resource("Policy", name, text="t", mode=mode)


def world(*without: tuple[str, str]) -> Inventory:
    objects = [
        pipeline(),
        resource("Task", "indexer", taint={"name": "index"}),
        resource("Task", "worker", taint={"name": "worker"}),
        resource("Task", "unequipped", taint={"name": "worker"}, runtimeName="java"),
        *(policy(name) for name in POLICIES),
        *(revision(policy(name)) for name in POLICIES),
        resource("JailPool", "main", allowedNamespaces={"names": ["search"]}),
    ]
    found = Inventory(genuine)
    for called in ("search", "mail"):
        found.put(space(called))
    for obj in objects:
        if (obj["kind"], obj["metadata"]["name"]) not in without:
            found.put(obj)
    return found


def test_policies_of_a_pipeline_are_those_of_conduits_paths_and_taints() -> None:
    assert references.policies(pipeline(), world()) == ("index", "internal", "public", "worker")


@pytest.mark.parametrize(
    ("without", "reason", "says"),
    [
        ((), "Accepted", "valid"),
        ((("Task", "worker"),), "TaskMissing", "no Task worker in namespace search"),
        ((("Policy", "public"), ("Policy", "internal")), "PolicyMissing", "no Policy internal, public"),
        ((("JailPool", "main"),), "PoolMissing", "no JailPool main"),
    ],
)
def test_missing_objects_are_named(without: tuple[tuple[str, str], ...], reason: str, says: str) -> None:
    inventory = world(*without)
    found = definitions.acceptance(pipeline(), valid(inventory), inventory)
    assert found.reason == reason
    assert says in found.message
    assert found.status == ("True" if reason == "Accepted" else "False")


@pytest.mark.parametrize(
    ("culprit", "problem", "reason", "says"),
    [
        (
            Reference("Task", "search", "worker"),
            "spec.command: missing",
            "Invalid",
            "Task worker: spec.command: missing",
        ),
        (Reference("Policy", "search", "index"), "1:3: no", "Invalid", "Policy index: 1:3: no"),
        (Reference("Policy", "search", "spare"), "1:3: no", "Accepted", "valid"),
        (Reference("Pipeline", "search", "syse"), "pipeline b claims /a/**", "PathConflict", "claims"),
    ],
)
def test_a_pipeline_says_what_is_wrong_with_what_it_names(
    culprit: Reference, problem: str, reason: str, says: str
) -> None:
    inventory = world()
    found = definitions.acceptance(
        pipeline(), {**valid(inventory), culprit: Verdict(problem, overlaps="claims" in problem)}, inventory
    )
    assert found.reason == reason
    assert says in found.message


OLDER, YOUNGER = pipeline("older"), pipeline("younger", created="2026-02-01T00:00:00Z")
BROKEN = pipeline("older", tasks=["missing"])
AUDITED = pipeline("older", mode="audit")
UNEQUIPPED = pipeline("older", tasks=["unequipped"])
ELSEWHERE = pipeline("older", conduits=[{"name": "queries", "kind": "socket", "listen": "192.0.2.1:80"}])


@pytest.mark.parametrize(
    ("first", "second", "in_force", "problems"),
    [
        (OLDER, YOUNGER, (), {}),
        (OLDER, YOUNGER, ("older", "younger"), {}),
        (YOUNGER, OLDER, ("younger",), {}),
        (YOUNGER, BROKEN, (), {}),
        (BROKEN, YOUNGER, ("older",), {}),
        (YOUNGER, AUDITED, (), {}),
        (AUDITED, YOUNGER, ("older",), {}),
        (YOUNGER, UNEQUIPPED, (), {}),
        (YOUNGER, ELSEWHERE, (), {}),
        (YOUNGER, OLDER, (), {"older": Verdict("spec.conduits: no")}),
        (OLDER, YOUNGER, (), {"older": Verdict("claims", overlaps=True)}),
    ],
)
def test_of_two_pipelines_one_that_cannot_run_takes_nothing_and_what_is_in_force_goes_on(
    first: dict[str, Any], second: dict[str, Any], in_force: tuple[str, ...], problems: dict[str, Verdict]
) -> None:
    inventory = world()
    verdicts = valid(inventory) | {
        Reference("Pipeline", "search", problem): found for problem, found in problems.items()
    }
    for given in ([first, second], [second, first]):
        assert definitions.precedence(given, in_force, verdicts, inventory) == [first, second]


@pytest.mark.parametrize(
    ("mode", "rejected", "revised", "claims"),
    [
        ("Enforce", False, True, True),
        ("Enforce", False, False, True),  # its revision is about to be made
        ("Enforce", True, True, False),
        ("Audit", False, True, False),
        ("Audit", False, False, False),
    ],
)
def test_a_pipeline_takes_nothing_by_a_policy_that_it_cannot_use(
    mode: str,
    rejected: bool,  # noqa: FBT001
    revised: bool,  # noqa: FBT001
    claims: bool,  # noqa: FBT001
) -> None:
    text = policy("own", mode)
    if rejected:
        text["status"] = {"rejectedRevision": policies.revision_name(text)}
    inventory = world()
    for obj in (text, revision(text)) if revised else (text,):
        inventory.put(obj)
    older = pipeline("older", conduits=[{"name": "queries", "kind": "pipe", "policy": {"name": "own"}}])
    order = [older, YOUNGER] if claims else [YOUNGER, older]
    assert definitions.precedence([older, YOUNGER], (), valid(inventory), inventory) == order


@pytest.mark.parametrize(("pipeline", "reason"), [(AUDITED, "ModeNotAllowed"), (ELSEWHERE, "AddressNotAllowed")])
def test_that_another_pipeline_has_its_paths_is_not_said_of_one_that_cannot_run(
    pipeline: dict[str, Any], reason: str
) -> None:
    inventory = world()
    verdicts = {**valid(inventory), reference(pipeline): Verdict("claims", overlaps=True)}
    assert definitions.acceptance(pipeline, verdicts, inventory).reason == reason


@pytest.mark.parametrize(
    ("rejected", "says"), [(False, "Policy public has no revision yet"), (True, "Policy public was rolled back")]
)
def test_a_policy_without_a_revision_to_run_with_is_named(*, rejected: bool, says: str) -> None:
    inventory = world(("PolicyRevision", policies.revision_name(policy("public"))))
    if rejected:
        held = policy("public")
        inventory.put({**held, "status": {"rejectedRevision": policies.revision_name(held)}})
    found = definitions.acceptance(pipeline(), valid(inventory), inventory)
    assert (found.status, found.reason) == ("False", "PolicyMissing")
    assert says in found.message


def test_a_pool_knows_its_pipelines_once_all_are_checked() -> None:
    inventory = world()
    broken = pipeline("broken", tasks=["other"])
    for obj in (broken, pipeline("elsewhere", pool="elsewhere", tasks=["other"])):
        inventory.put(obj)
    verdicts = valid(inventory)
    found = definitions.refused("main", "search", verdicts, inventory)
    assert found is not None
    assert {ref.name: condition.reason for ref, condition in found.items()} == {"broken": "TaskMissing"}
    del verdicts[reference(broken)]
    assert definitions.refused("main", "search", verdicts, inventory) is None


def test_a_stranger_s_pipeline_holds_up_nothing() -> None:
    inventory = world()
    inventory.put(pipeline("waiting", "mail", created="2025-01-01T00:00:00Z"))
    verdicts = {ref: verdict for ref, verdict in valid(inventory).items() if ref.namespace == "search"}
    assert definitions.refused("main", "search", verdicts, inventory) == {}


@pytest.mark.parametrize(
    ("pool", "status", "reasons"),
    [
        ({"allowedNamespaces": {"names": ["search"]}}, {}, ("Accepted", "NamespaceNotAllowed")),
        ({"allowedNamespaces": {"names": ["mail"]}}, {"namespace": "search"}, ("NamespaceNotAllowed", "Accepted")),
        ({"allowedNamespaces": {"names": []}}, {"namespace": "search"}, ("NamespaceNotAllowed", "NamespaceNotAllowed")),
        ({"allowedNamespaces": {}}, {"namespace": "search"}, ("NamespaceNotAllowed", "NamespaceNotAllowed")),
        ({}, {"namespace": "search"}, ("Accepted", "NamespaceNotAllowed")),
        ({}, {}, ("NamespaceNotAllowed", "NamespaceNotAllowed")),
    ],
)
def test_a_pool_says_which_namespace_it_serves_whoever_is_older(
    pool: dict[str, Any], status: dict[str, Any], reasons: tuple[str, str]
) -> None:
    inventory = world()
    inventory.put({**resource("JailPool", "main", **pool), "status": status})
    older = pipeline("a", "mail", created="2025-01-01T00:00:00Z", tasks=[], conduits=[])
    inventory.put(older)
    found = [definitions.acceptance(tested, valid(inventory), inventory) for tested in (pipeline(), older)]
    assert tuple(accepted.reason for accepted in found) == reasons
    for accepted, stranger, other in zip(found, ("search", "mail"), ("mail", "search"), strict=True):
        if accepted.reason == "NamespaceNotAllowed":
            assert f"does not serve namespace {stranger}" in accepted.message
            assert other not in accepted.message


@pytest.mark.parametrize(
    ("allowed", "mode", "policy_mode", "says"),
    [
        (None, None, "Enforce", ""),
        (None, "dynamic", "Enforce", ""),
        (None, "dynamic-lazy", "Enforce", ""),
        (["shai", "dynamic"], "dynamic-lazy", "Enforce", "mode dynamic-lazy is not allowed"),
        (None, "baseline", "Enforce", "baseline is not allowed (JailPool main allows shai, dynamic, dynamic-lazy)"),
        (None, "audit", "Enforce", "mode audit is not allowed"),
        (None, "shai", "Audit", "Policy public is in mode Audit, which counts as audit and is not allowed"),
        (None, "shai", "Warn", "Policy public is in mode Warn"),
        (["shai", "audit"], "shai", "Audit", ""),
        (["shai", "audit"], "audit", "Warn", ""),
        (["baseline"], "baseline", "Enforce", ""),
        (["baseline"], "shai", "Enforce", "mode shai is not allowed (JailPool main allows baseline)"),
        ([], "shai", "Enforce", "mode shai is not allowed (JailPool main allows none)"),
    ],
)
def test_a_pool_says_in_which_modes_it_runs_pipelines(
    allowed: list[str] | None, mode: str | None, policy_mode: str, says: str
) -> None:
    inventory = world(("PolicyRevision", policies.revision_name(policy("public"))))
    modes: dict[str, Any] = {} if allowed is None else {"allowedModes": allowed}
    inventory.put(resource("JailPool", "main", allowedNamespaces={"names": ["search"]}, **modes))
    inventory.put(policy("public", policy_mode))
    inventory.put(revision(policy("public", policy_mode)))
    obj = pipeline(**({} if mode is None else {"mode": mode}))
    inventory.put(obj)
    found = definitions.acceptance(obj, valid(inventory), inventory)
    assert found.reason == ("ModeNotAllowed" if says else "Accepted")
    assert says in found.message


@pytest.mark.parametrize(
    ("given", "known", "wanted", "says"),
    [
        (["java"], None, "java", ""),
        (["java"], ["java"], "java", ""),
        (["java"], None, None, ""),
        ([], [], None, ""),
        ([], None, "java", "task worker names runtime java, and JailPool main has no runtimes; name another one"),
        (
            ["java", "c"],
            ["java", "c"],
            "perl",
            "JailPool main has the runtimes java, c; name another one in the task's spec.",
        ),
        (["java"], ["java"], "/", "task worker names runtime /, and JailPool main has the runtimes java"),
        (["java"], [], "java", "names runtime java, which not all members of JailPool main have yet"),
        ([], ["java"], "java", "JailPool main has no runtimes"),
    ],
)
def test_a_pool_gives_the_runtimes_of_tasks(
    given: list[str], known: list[str] | None, wanted: str | None, says: str
) -> None:
    inventory = world()
    runtimes = [{"name": name, "paths": ["/secret"]} for name in given]
    pool = resource("JailPool", "main", allowedNamespaces={"names": ["search"]}, runtimes=runtimes)
    inventory.put({**pool, "status": {} if known is None else {"runtimes": known}})
    stranger = resource("JailPool", "other", runtimes=[{"name": "others", "paths": ["/"]}])
    inventory.put(stranger)
    inventory.put(resource("Task", "worker", taint={"name": "worker"}, **({"runtimeName": wanted} if wanted else {})))
    found = definitions.acceptance(pipeline(), valid(inventory), inventory)
    assert found.reason == ("RuntimeMissing" if says else "Accepted")
    assert says in found.message
    assert "secret" not in found.message
    assert "others" not in found.message


def listening(listen: str, **variables: str) -> dict[str, Any]:
    web = {"name": "web", "kind": "connection", "listen": listen, "task": "worker"}
    given = [{"name": name, "value": value} for name, value in variables.items()]
    return pipeline(conduits=[web], variables=given)


@pytest.mark.parametrize(
    ("listen", "variables", "allowed"),
    [
        ("$(MEMBER_ADDRESS):8640", {}, True),
        ("$(MEMBER_ADDRESS):8640", {"MEMBER_ADDRESS": "127.0.20.1"}, True),  # the provider's value takes precedence
        ("[$(MEMBER_ADDRESS)]:8640", {}, True),
        ("$(MEMBER_ADDRESS):$(PORT)", {"PORT": "8640"}, True),
        ("127.0.10.1:8640", {}, True),
        ("$(GIVEN):8640", {"GIVEN": "127.0.20.1"}, True),  # the pool's variable takes precedence
        ("$(OWN):8640", {}, True),  # the provider replaces in the pool's values
        ("$(MEMBER_ADDRESS):65535", {}, True),
        ("$(HOST):8640", {"HOST": "$(MEMBER_ADDRESS)"}, False),  # the monitor does not replace in a pipeline's values
        ("$$(HOST):8640", {"HOST": "(MEMBER_ADDRESS)"}, False),
        ("$(A)$(B):8640", {"A": "$(MEMBER", "B": "_ADDRESS)"}, False),
        ("$(MEMBER_ADDRESS):$(PORT)", {"PORT": "73979"}, False),
        ("$(MEMBER_ADDRESS):$(PORT)", {"PORT": "\u0661"}, False),
        ("$(MEMBER_ADDRESS):$(PORT)", {"PORT": "9" * 5000}, False),  # more digits than Python reads as a number
        ("$(MEMBER_ADDRESS):65536", {}, False),
        ("$(MEMBER_ADDRESS):0", {}, False),
        ("127.0.20.1:8640", {}, False),
        ("0.0.0.0:8640", {}, False),
        ("[::]:8640", {}, False),
        ("[::ffff:127.0.10.1]:8640", {}, False),
        ("$(HOST):8640", {"HOST": "127.0.20.1"}, False),
        ("$(ALL)", {"ALL": "127.0.20.1:8640"}, False),
        ("$(UNKNOWN):8640", {}, False),
        ("$(MEMBER_ADDRESS)0:8640", {}, False),
        ("$(MEMBER_ADDRESS):$(PORT)", {}, False),
        ("$(MEMBER_ADDRESS):9443", {}, False),
        ("$(MEMBER_ADDRESS):$(PORT)", {"PORT": "09443"}, False),
        ("127.0.10.2:9443", {}, False),
    ],
)
def test_a_pipeline_listens_at_its_pool_s_addresses_only(
    listen: str, variables: dict[str, str], *, allowed: bool
) -> None:
    inventory = world()
    network = {"addresses": "127.0.10.0/24", "monitorPort": 9443}
    given = [{"name": "GIVEN", "value": "127.0.10.7"}, {"name": "OWN", "value": "$(MEMBER_ADDRESS)"}]
    inventory.put(
        resource("JailPool", "main", allowedNamespaces={"names": ["search"]}, network=network, variables=given)
    )
    obj = listening(listen, **variables)
    inventory.put(obj)
    found = definitions.acceptance(obj, valid(inventory), inventory)
    assert found.reason == ("Accepted" if allowed else "AddressNotAllowed"), found.message
    assert found.message.isprintable()


@pytest.mark.parametrize(
    ("desk", "allowed"),
    [("$(MEMBER_ADDRESS):8642", True), ("127.0.20.1:8642", False), ("$(MEMBER_ADDRESS):9443", False)],
)
def test_every_address_of_a_pipeline_has_to_be_allowed(desk: str, *, allowed: bool) -> None:
    inventory = world()
    network = {"addresses": "127.0.10.0/24", "monitorPort": 9443}
    inventory.put(resource("JailPool", "main", allowedNamespaces={"names": ["search"]}, network=network))
    obj = listening("$(MEMBER_ADDRESS):8640")
    obj["spec"]["conduits"].append({"name": "desk", "kind": "connection", "listen": desk, "task": "worker"})
    inventory.put(obj)
    found = definitions.acceptance(obj, valid(inventory), inventory)
    assert found.reason == ("Accepted" if allowed else "AddressNotAllowed"), found.message
    assert ("conduit desk may not listen" in found.message) == (not allowed)


@pytest.mark.parametrize(
    ("given", "listen", "allowed"),
    [
        ({"names": ["search", "mail"]}, "127.0.10.1:8640", True),
        ({"names": ["search", "mail"]}, "$(MEMBER_ADDRESS):8640", True),
        ({"names": ["search", "mail"]}, "127.0.10.2:8640", False),  # a member of mail
        ({"names": ["search", "mail"]}, "127.0.10.3:8640", False),  # a member of an earlier namespace search
        ({"names": ["search", "mail"]}, "127.0.10.9:8640", False),  # nobody's, and soon anybody's
        ({"names": ["search"], "selector": {}}, "127.0.10.9:8640", False),
        ({"names": ["search"]}, "127.0.10.9:8640", False),  # others still have members
    ],
)
def test_in_a_shared_pool_a_pipeline_listens_at_its_own_members_addresses_only(
    given: dict[str, Any], listen: str, *, allowed: bool
) -> None:
    inventory = world()
    owners = (tenant("search"), tenant("mail"), tenant("search", 0))
    rows = [
        {"name": f"main-{number}", "address": f"127.0.10.{number}", "namespace": owner.name, "namespaceUID": owner.uid}
        for number, owner in enumerate(owners, 1)
    ]
    inventory.put({**resource("JailPool", "main", allowedNamespaces=given), "status": {"members": rows}})
    obj = listening(listen)
    inventory.put(obj)
    found = definitions.acceptance(obj, valid(inventory), inventory)
    assert found.reason == ("Accepted" if allowed else "AddressNotAllowed"), found.message
    assert "mail" not in found.message


@pytest.mark.parametrize(
    ("owners", "permits", "reason"),
    [
        (["search"], True, "Accepted"),
        (["search", "mail", "mail"], True, "Accepted"),
        (["search", "mail", "search"], True, "ChoicesNotShared"),
        (["search", "search"], False, "Accepted"),
    ],
)
def test_choices_are_for_namespaces_with_one_member(owners: list[str], permits: bool, reason: str) -> None:  # noqa: FBT001
    inventory = world()
    rows = [
        {"name": f"main-{number}", "namespace": owner, "namespaceUID": tenant(owner).uid}
        for number, owner in enumerate(owners)
    ]
    allowed = {"names": ["search", "mail"]}
    inventory.put({**resource("JailPool", "main", allowedNamespaces=allowed), "status": {"members": rows}})
    chosen = {"choices": [{"by": "{owner}", "policy": {"name": "public"}}]} if permits else {}
    paths = [{"path": "/corpus/{owner}/**", "policy": {"name": "public"}, **chosen}]
    obj = pipeline(conduits=[{"name": "documents", "kind": "file", "paths": paths}])
    inventory.put(obj)
    found = definitions.acceptance(obj, valid(inventory), inventory)
    assert found.reason == reason, found.message
    assert "mail" not in found.message


def test_on_the_first_visit_everything_is_unknown() -> None:
    plan = definitions.pipeline(pipeline(), {}, world(), NOW)
    (status,) = (action.status for action in plan.actions if isinstance(action, SetStatus))
    assert {(condition["type"], condition["status"]) for condition in status["conditions"]} == {
        ("Accepted", "Unknown"),
        ("Ready", "Unknown"),
    }
    assert not [action for action in plan.actions if isinstance(action, Emit)]


def test_a_changed_task_has_its_namespace_and_pool_looked_at() -> None:
    inventory = world()
    task = resource("Task", "worker", taint={"name": "other"})
    assert set(dependents.of(task, inventory.find("Task", "search", "worker"), inventory)) == {
        Reference("Definitions", "", "search"),
        Reference("JailPool", "", "main"),
    }


def test_a_changed_status_does_not_have_a_namespace_checked_again() -> None:
    inventory = world()
    before = inventory.find("Policy", "search", "public")
    assert before is not None
    after = {**before, "status": {"latestRevision": 2}}
    assert Reference("Definitions", "", "search") not in set(dependents.of(after, before, inventory))


@pytest.mark.parametrize(
    ("kind", "name", "change", "again"),
    [
        ("Policy", "public", {"status": {"rejectedRevision": "public-0"}}, True),
        ("JailPool", "main", {"status": {"namespaces": [{"name": "search", "uid": "u", "stableRelease": "r"}]}}, True),
        ("JailPool", "main", {"status": {"namespaces": [{"name": "mail", "uid": "u", "stableRelease": "r"}]}}, False),
        ("JailPool", "main", {"status": {"readyMembers": 1}}, False),
        ("JailPool", "main", {"spec": {"allowedModes": []}}, True),
    ],
)
def test_what_decides_between_two_pipelines_has_their_namespace_checked_again(
    kind: str,
    name: str,
    change: dict[str, Any],
    again: bool,  # noqa: FBT001
) -> None:
    inventory = world()
    (before,) = (obj for obj in inventory.all(kind) if obj["metadata"]["name"] == name)
    found = set(dependents.of({**before, **change}, before, inventory))
    assert (Reference("Definitions", "", "search") in found) is again


@pytest.mark.parametrize("kind", ["Policy", "PolicyRevision"])
def test_pipelines_are_looked_at_when_there_is_a_revision_for_them(kind: str) -> None:
    inventory = world()
    (public,) = (obj for obj in inventory.all(kind) if obj["metadata"]["name"].startswith("public"))
    found = set(dependents.of(public, public, inventory))
    assert {reference(pipeline()), Reference("JailPool", "", "main")} <= found
