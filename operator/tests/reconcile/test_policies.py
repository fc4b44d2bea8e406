# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import policies
from shai_operator.reconcile.actions import Create, Delete, Emit, Plan, SetStatus

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def policy(text: str = "policy p { read :- true. }", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "friends", "namespace": "search", "uid": "u1", "generation": 3},
        "spec": {"text": text, **more.pop("spec", {})},
        **more,
    }


def reconcile(thing: dict[str, Any], revisions: list[Any], problem: str | None = "", *, used: bool = True) -> Plan:
    return policies.reconcile(thing, revisions, problem=problem, parameters=("owner",), used=used, now=NOW)


def created(plan: Plan) -> list[dict[str, Any]]:
    return [dict(one.body) for one in plan.actions if isinstance(one, Create)]


def stored(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "uid": f"uid of {body['metadata']['name']}"}}


def status(plan: Plan) -> dict[str, Any]:
    (found,) = (one for one in plan.actions if isinstance(one, SetStatus))
    return dict(found.status)


def conditions(plan: Plan) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status(plan)["conditions"]}


def rolled_out(state: str, reason: str, **more: Any) -> dict[str, Any]:
    condition = {"type": "RolledOut", "status": state, "reason": reason, "message": "m"}
    return {"conditions": [condition], **more}


def test_a_valid_policy_gets_a_revision_that_it_owns() -> None:
    (body,) = created(reconcile(policy(), []))
    assert body["metadata"]["name"] == f"friends-{body['spec']['hash'][:10]}"
    assert body["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert body["spec"]["revision"] == 1
    assert body["spec"]["mode"] == "Enforce"


def test_the_second_look_creates_nothing() -> None:
    revisions = [stored(one) for one in created(reconcile(policy(), []))]
    plan = reconcile(policy(), revisions)
    assert created(plan) == []
    assert status(plan)["latestRevision"] == 1


def test_another_mode_is_another_revision() -> None:
    revisions = [stored(one) for one in created(reconcile(policy(), []))]
    (body,) = created(reconcile(policy(spec={"mode": "Audit"}), revisions))
    assert (body["spec"]["revision"], body["spec"]["mode"]) == (2, "Audit")


def test_an_invalid_policy_gets_no_revision_and_says_why() -> None:
    plan = reconcile(policy(), [], "spec.text:1:8: expected a name")
    assert created(plan) == []
    assert conditions(plan) == {"Accepted": ("False", "Invalid"), "Ready": ("False", "Invalid")}
    assert [one.reason for one in plan.actions if isinstance(one, Emit)] == ["Invalid"]


def test_what_is_not_yet_checked_is_unknown() -> None:
    plan = reconcile(policy(), [], None)
    assert created(plan) == []
    assert conditions(plan) == {"Accepted": ("Unknown", "Checking"), "Ready": ("Unknown", "Checking")}


def test_ready_says_what_is_in_force() -> None:
    table = [
        ({}, False, ("True", "Unused")),
        ({}, True, ("Unknown", "Pending")),
        (rolled_out("True", "Stable", stableRevision="x"), True, ("True", "Stable")),
        (rolled_out("False", "Progressing", stableRevision="x"), True, ("True", "Progressing")),
        (rolled_out("False", "Progressing"), True, ("False", "Progressing")),
        (rolled_out("False", "RolledBack", stableRevision="x"), True, ("False", "RolledBack")),
    ]
    for known, used, want in table:
        plan = reconcile(policy(status=known), [], used=used)
        assert conditions(plan)["Ready"] == want, known


def test_a_policy_on_its_way_out_is_left_alone() -> None:
    thing = policy()
    thing["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert reconcile(thing, []).actions == []


@given(st.lists(st.text(min_size=1, max_size=3), max_size=12), st.integers(0, 4), st.integers(0, 11))
def test_history_keeps_its_limit_and_whatever_is_referred_to(texts: list[str], limit: int, stable: int) -> None:
    revisions: list[dict[str, Any]] = []
    for text in texts:
        revisions += [stored(one) for one in created(reconcile(policy(text), revisions))]
    assert [one["spec"]["revision"] for one in revisions] == list(range(1, len(set(texts)) + 1))
    if not revisions:
        return
    held = revisions[stable % len(revisions)]["metadata"]["name"]
    thing = policy(texts[-1], spec={"revisionHistoryLimit": limit}, status={"stableRevision": held})
    gone = {one.target.name for one in reconcile(thing, revisions).actions if isinstance(one, Delete)}
    left = [one for one in revisions if one["metadata"]["name"] not in gone]
    assert held not in gone
    assert policies.revision_name(thing) not in gone
    assert len(left) <= limit + 2
    spare = [
        one["spec"]["revision"] for one in left if one["metadata"]["name"] not in (held, policies.revision_name(thing))
    ]
    assert all(
        one["spec"]["revision"] < min(spare, default=0) or not spare
        for one in revisions
        if one["metadata"]["name"] in gone
    )
