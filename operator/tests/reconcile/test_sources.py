# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import definitions, dependents, releases, sources, tenancy
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import Reference, reference
from tests.reconcile.builders import FOR_SEARCH, inventory, only_condition, refused, resource, valid

if TYPE_CHECKING:
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.releases import Definitions

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TASK = resource("Task", "search", {"command": ["/bin/true"]})
FACTS = resource("FactSource", "regions", {"inline": []})
OWN, OTHER = "$(REDIS_SOCKET)", "/run/redis/facts.sock"


def pool(*allowed: str, called: str = "main", managed: bool = True, **more: Any) -> Object:
    store = {"mode": "Managed"} if managed else {}
    return resource("JailPool", called, {**FOR_SEARCH, "keyValue": store, "allowedSources": list(allowed), **more})


def pipeline(called: str = "syse", *, socket: str = "", **more: Any) -> Object:
    store = {"keyValue": {"socket": socket}} if socket else {}
    return resource("Pipeline", called, {"pool": "main", "tasks": ["search"], **store, **more})


def http(url: str, called: str = "friends", namespace: str = "search") -> Object:
    return resource("FactSource", called, {"http": {"url": url}}, namespace=namespace)


def redis(socket: str) -> Object:
    return resource("FactSource", "friends", {"redis": {"socket": socket, "stream": {"key": "facts"}}})


def ready(source: Object, *others: Object, verdict: Verdict | None = None) -> tuple[str, str, str]:
    known = inventory(source, *others)
    found = only_condition(definitions.fact_source(source, verdict or Verdict(), known, NOW))
    return found["status"], found["reason"], found["message"]


def accepted(obj: Object, *others: Object) -> tuple[str, str]:
    known = inventory(obj, TASK, *others)
    found = definitions.acceptance(obj, valid(known), known)
    return found.reason, found.message


def build(where: Object, *objects: Object, stable: Release | None = None) -> Definitions:
    stored = {stable.name: stable} if stable else {}
    where = {**where, "status": {**where.get("status", {}), **({"stableRelease": stable.name} if stable else {})}}
    known = inventory(where, *objects)
    return releases.build(known, where, refused(where, known), stored)


VARIABLES = [
    {"name": "FACTS", "value": "https://facts.example"},
    {"name": "HERE", "value": "http://$(MEMBER_ADDRESS):80"},
    {"name": "STORE", "value": OWN},
    {"name": "SOCKET", "value": OTHER},
]


@pytest.mark.parametrize(
    ("source", "allowed", "fits"),
    [
        (FACTS, (), True),
        (resource("FactSource", "file", {"file": {"path": "/facts.jsonl"}}), (), True),
        (http("https://facts.example/friends"), (), False),
        (http("https://facts.example/friends"), ("https://facts.example",), True),
        (http("https://facts.example/friends"), ("https://facts.example/others/", "unix:/run/a.sock"), False),
        (http("http://169.254.169.254/latest/"), ("https://facts.example",), False),
        (http("https://facts.example@169.254.169.254/"), ("https://facts.example",), False),
        (http("$(FACTS)/friends"), ("https://facts.example",), True),
        (http("$(FACTS)@127.0.0.1/"), ("https://facts.example",), False),
        (http("$(HERE)/"), ("http://127.0.0.1:80",), False),
        (http("$(NOTHING)/"), ("https://facts.example",), False),
        (redis(OWN), (), True),
        (redis("$(STORE)"), (), True),
        (redis(OWN + "/../other.sock"), (), False),
        (redis(OTHER), (), False),
        (redis(OTHER), (f"unix:{OTHER}",), True),
        (redis("$(SOCKET)"), (f"unix:{OTHER}",), True),
        (redis("$(DATA)/made-by-a-task.sock"), ("unix:/run/a.sock",), False),
    ],
)
def test_a_source_is_ready_only_if_the_pool_allows_it(source: Object, allowed: tuple[str, ...], *, fits: bool) -> None:
    where = pool(*allowed, variables=VARIABLES)
    status, reason, message = ready(source, where, pipeline())
    assert (status, reason) == (("True", "Accepted") if fits else ("False", "SourceNotAllowed"))
    assert accepted(pipeline(), source, where)[0] == ("Accepted" if fits else "SourceNotAllowed")
    if not fits:
        content = source["spec"].get("http", {}).get("url") or f"unix:{source['spec']['redis']['socket']}"
        assert f"JailPool main does not allow {content}; ask its owner to list it in spec.allowedSources" in message


def test_the_pool_s_own_list_and_variables_are_not_told() -> None:
    where = pool("https://secret.example", variables=[{"name": "FACTS", "value": "https://hidden.example"}])
    told = ready(http("$(FACTS)/x"), where, pipeline())[2] + accepted(pipeline(), http("$(FACTS)/x"), where)[1]
    assert "$(FACTS)/x" in told
    assert "secret" not in told
    assert "hidden" not in told


def test_a_store_that_is_not_managed_is_nobody_s() -> None:
    assert ready(redis(OWN), pool(managed=False), pipeline())[1] == "SourceNotAllowed"


def test_what_the_pools_of_others_allow_is_not_asked() -> None:
    theirs = resource("JailPool", "main", {"allowedNamespaces": {"names": ["other"]}})
    assert ready(http("https://facts.example"), theirs, pipeline())[1] == "Accepted", "the pipeline says what is wrong"
    assert accepted(pipeline(), http("https://facts.example"), theirs)[0] == "NamespaceNotAllowed"
    assert ready(http("https://facts.example"), pool())[1] == "Accepted", "no pipeline uses the pool"
    strangers = http("https://facts.example", namespace="other")
    assert accepted(pipeline(), strangers, pool())[0] == "Accepted"


def test_what_cannot_be_read_is_said_first() -> None:
    bad = Verdict("spec.http.url: no")
    assert ready(http("x"), pool(), pipeline(), verdict=bad)[:2] == ("False", "Invalid")


@pytest.mark.parametrize(
    ("socket", "allowed", "mode", "fits"),
    [
        (OWN, (), "shai", True),
        (OWN, (), "baseline", True),
        ("$(STORE)", (), "shai", True),
        (OTHER, (), "shai", False),
        (OTHER, (), "baseline", False),
        (OTHER, (f"unix:{OTHER}",), "baseline", True),
        (OTHER, (f"unix:{OTHER}",), "shai", False),
        ("/run" + OWN, (), "shai", False),
        (OWN + "/x", (), "shai", False),
        ("$(MINE)", (), "shai", False),
        ("$(MINE)", (f"unix:{OTHER}",), "baseline", True),
    ],
)
def test_a_pipeline_has_the_member_s_own_store(socket: str, allowed: tuple[str, ...], mode: str, *, fits: bool) -> None:
    where = pool(*allowed, variables=VARIABLES, allowedModes=["shai", "baseline"])
    wanted = pipeline(socket=socket, mode=mode, variables=[{"name": "MINE", "value": OTHER}])
    reason, message = accepted(wanted, where)
    assert reason == ("Accepted" if fits else "SourceNotAllowed")
    assert fits or socket in message


def test_a_pipeline_s_own_variable_is_not_the_store_of_the_member() -> None:
    wanted = pipeline(socket=OWN, variables=[{"name": "REDIS_SOCKET", "value": OTHER}])
    assert accepted(wanted, pool(managed=True))[0] == "Accepted"
    assert accepted(wanted, pool(managed=False))[0] == "SourceNotAllowed"


def test_a_list_that_cannot_be_read_allows_nothing() -> None:
    assert ready(http("https://facts.example"), pool("https://facts.example", "*"), pipeline())[1] == "SourceNotAllowed"


# What members get.


def names(built: Definitions) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in built.facts.manifests]


def test_no_pipeline_runs_without_the_facts_of_a_source_that_is_not_allowed() -> None:
    source = http("https://facts.example/blocked")
    before = build(pool("https://facts.example"), TASK, pipeline(), FACTS, source)
    assert (names(before), before.incomplete, bool(before.release and before.release.of_kind("Pipeline"))) == (
        ["friends", "regions"],
        False,
        True,
    )
    after = build(pool(), TASK, pipeline(), FACTS, source, stable=before.release)
    assert (names(after), after.incomplete) == (["regions"], True)
    assert after.release is not None
    assert after.release.manifests == (), "the one in force, without the facts, could allow more"
    assert after.left_out[reference(pipeline())].reason == "SourceNotAllowed"
    again = build(pool("https://facts.example"), TASK, pipeline(), FACTS, source, stable=after.release)
    assert again.release == before.release


def test_sources_of_another_namespace_change_nothing() -> None:
    stranger = http("http://169.254.169.254/", "friends", "other")
    built = build(pool(), TASK, pipeline(), FACTS, stranger)
    assert (names(built), built.incomplete) == (["regions"], False)
    assert built.release == build(pool(), TASK, pipeline(), FACTS).release


def test_a_store_that_is_allowed_no_longer_takes_its_pipeline_out_at_once() -> None:
    modes: dict[str, Any] = {"allowedModes": ["baseline", "shai"]}
    first, second = pipeline("first", socket=OTHER, mode="baseline"), pipeline("second", socket=OWN)
    before = build(pool(f"unix:{OTHER}", **modes), TASK, first, second).release
    assert before is not None
    assert releases.forbidden(pool(f"unix:{OTHER}", **modes), before) == frozenset()
    assert releases.forbidden(pool(**modes), before) == {"first"}
    after = build(pool(**modes), TASK, first, second, stable=before).release
    assert after is not None
    assert [obj["metadata"]["name"] for obj in after.of_kind("Pipeline")] == ["second"]


# Principals.


def principal(called: str, *spaces: str) -> Object:
    limits = {"allowedNamespaces": {"names": [space for space in spaces if space]}} if spaces else {}
    return resource("Principal", called, {"publicKey": "00", "attributes": [], **limits})


def test_a_principal_is_known_where_it_says() -> None:
    everywhere, here, there = principal("anybody"), principal("ours", "search"), principal("theirs", "other")
    nowhere, both = principal("nobody", ""), principal("both", "other", "search")
    known = inventory(everywhere, here, there, nowhere, both)
    assert [found["metadata"]["name"] for found in tenancy.principals(known, "search")] == ["anybody", "both", "ours"]
    built = build(pool(), TASK, pipeline(), everywhere, here, there, nowhere, both)
    assert names(built) == ["anybody", "both", "ours"]
    for manifest in built.facts.manifests:
        assert "allowedNamespaces" not in manifest["spec"], "where else it is known is not for members"


# What depends on them.


def test_what_a_pool_s_list_decides_is_decided_again() -> None:
    known = inventory(pool(), pipeline(), FACTS, http("https://facts.example"))
    sourced = {Reference("FactSource", "search", called) for called in ("regions", "friends")}
    changed = set(dependents.of(pool("https://facts.example"), pool(), known))
    assert sourced | {reference(pipeline())} <= changed
    assert not sourced & set(dependents.of(pool(), pool(), known))
    assert sourced <= set(dependents.of(pipeline(), None, known))
    assert reference(pipeline()) in set(dependents.of(http("https://facts.example"), None, known))


def test_the_entries_are_passed_on_as_they_are_written() -> None:
    assert sources.listed(pool("https://facts.example", "unix:/a b")) == ("https://facts.example", "unix:/a b")
    assert sources.listed(resource("JailPool", "main", {})) == ()
