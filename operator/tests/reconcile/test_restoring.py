# SPDX-License-Identifier: BSD-2-Clause
"""What is restored from a backup, and in which form."""

from __future__ import annotations

from typing import Any

import pytest

from shai_operator.reconcile import bundles, policies, restoring, seals
from shai_operator.reconcile.objects import name, uid
from tests.reconcile.builders import SEAL, resource, revision

OTHER_SEAL = seals.Seal(b"another operator's secret")
POLICY = resource("Policy", "friends", {"text": "policy friends { read :- true. }"})
GENUINE = policies.revision(POLICY, 3, SEAL)


def with_spec(changed: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**changed, "spec": {**changed["spec"], **fields}}


def renamed(changed: dict[str, Any], called: str) -> dict[str, Any]:
    return {**changed, "metadata": {**changed["metadata"], "name": called}}


def test_only_what_the_operator_cannot_find_out_again_is_restored() -> None:
    pool = resource("JailPool", "web")
    release = bundles.store(bundles.release("web", "search", [], {}), pool, "shai-system")
    secret: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "shai-authority", "namespace": "shai-system"}}
    elsewhere = {**secret, "metadata": {**secret["metadata"], "namespace": "search"}}
    login = {**secret, "metadata": {"name": "login", "namespace": "shai-system"}}
    results = {"kind": "ConfigMap", "metadata": {"name": "results", "namespace": "shai-system"}}
    leaving = resource("Policy", "leaving", deletionTimestamp="2026-06-01T12:00:00Z")
    runs = [resource("AnalysisRun", "run"), resource("Benchmark", "cost"), resource("Pipeline", "p")]
    documents = [
        {"kind": "List", "items": [elsewhere, login, secret, results, release]},
        {"kind": "PolicyList", "items": [leaving, POLICY, GENUINE]},
        pool,
        *runs,
        {"kind": "Namespace", "metadata": {"name": "search", "uid": "s-1"}},
    ]
    found = restoring.read(documents, "shai-authority", "shai-system")
    assert found == restoring.Backup(secret, (POLICY,), (pool,), (GENUINE,), (release,), {"s-1": "search"})


def test_an_object_has_the_owner_of_this_cluster_and_no_identity_of_the_former_one() -> None:
    saved = {
        **revision(POLICY),
        "metadata": {
            **revision(POLICY)["metadata"],
            "resourceVersion": "7",
            "creationTimestamp": "2026-06-01T12:00:00Z",
            "finalizers": ["foregroundDeletion"],
            "labels": {"a": "b"},
        },
        "status": {"x": 1},
    }
    owner = resource("Policy", "friends", uid="new")
    made = restoring.unowned(saved, owner)
    assert made.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert made["metadata"].keys() == {"name", "namespace", "labels", "annotations", "ownerReferences"}
    assert [reference["uid"] for reference in made["metadata"]["ownerReferences"]] == [uid(owner)]
    assert policies.genuine(made, SEAL), "its seal is about nothing that changes"
    assert "ownerReferences" not in restoring.unowned(saved)["metadata"]


def test_what_kubectl_applied_is_not_kept_as_such() -> None:
    saved = resource("Policy", "p", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"})
    assert restoring.unowned(saved)["metadata"]["annotations"] == {"a": "b"}


FORMER = renamed(GENUINE, f"friends-{GENUINE['spec']['hash'][:10]}")


@pytest.mark.parametrize(
    ("saved", "why", "may_be_sealed"),
    [
        (GENUINE, "", True),
        (SEAL.put_on(FORMER), "", False),
        (policies.revision(POLICY, 3, OTHER_SEAL), "does not have the seal", True),
        (with_spec(GENUINE, revision=4), "does not have the seal", True),
        (with_spec(GENUINE, text="policy friends { }"), "not those of its content", False),
        (SEAL.put_on(with_spec(GENUINE, text="policy friends { }")), "not those of its content", False),
        (renamed(GENUINE, "friends-" + "0" * 32), "not those of its content", False),
    ],
)
def test_a_revision_is_restored_only_with_its_seal(saved: dict[str, Any], why: str, may_be_sealed: bool) -> None:  # noqa: FBT001
    refused = restoring.refusal(saved, SEAL)
    assert why in refused
    assert bool(why) == bool(refused)
    assert restoring.may_be_sealed(saved) is may_be_sealed


def test_the_status_comes_back_under_the_names_of_its_writers() -> None:
    conditions = [{"type": "Ready"}]
    revisions = {"stableRevision": "a", "rejectedRevision": "b"}
    saved = resource(
        "Policy", "p", status={"latestRevision": 7, "observedGeneration": 5, "conditions": conditions, **revisions}
    )
    present = resource("Policy", "p", uid="new")
    parts = [(part.writer, part.status) for part in restoring.statuses(saved, present, {})]
    assert parts == [("shai-operator", {"latestRevision": 7}), ("shai-operator-rollout", revisions)]
    assert all(part.obj is present for part in restoring.statuses(saved, present, {}))

    known = {"stableRelease": "r", "members": [{"name": "web-0"}], "observedGeneration": 5, "conditions": conditions}
    (part,) = restoring.statuses(resource("JailPool", "web", status=known), resource("JailPool", "web"), {})
    assert (part.writer, set(part.status)) == ("shai-operator", {"stableRelease", "members"})
    assert name(part.obj) == "web"


def test_members_belong_to_the_namespaces_that_an_administrator_says_are_the_same() -> None:
    """A namespace that only has the name of a former one does not get its members."""
    rows = [
        {"name": "web-0", "namespace": "search", "namespaceUID": "s-1"},
        {"name": "web-1", "namespace": "search", "namespaceUID": "s-0"},  # deleted, before another one got its name
        {"name": "web-2"},
    ]
    entries = [{"name": "search", "uid": "s-1"}, {"name": "search", "uid": "s-0"}]
    saved = resource("JailPool", "web", status={"members": rows, "namespaces": entries})
    present = {"s-1": "s-9"}
    (part,) = restoring.statuses(saved, resource("JailPool", "web"), present)
    assert [row.get("namespaceUID") for row in part.status["members"]] == ["s-9", "s-0", None]
    assert [entry["uid"] for entry in part.status["namespaces"]] == ["s-9", "s-0"]
    assert restoring.unknown_namespaces(saved, present) == ["search"]
    assert restoring.unknown_namespaces(saved, {**present, "s-0": "s-8"}) == []
