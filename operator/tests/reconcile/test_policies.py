# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import policies
from shai_operator.reconcile.actions import Create, Delete, Emit, Plan, Requeue, SetStatus
from shai_operator.reconcile.conditions import UNSAID_SECONDS, timestamp
from shai_operator.reconcile.objects import Inventory, reference
from shai_operator.reconcile.seals import ANNOTATION, Seal
from tests.reconcile.builders import SEAL, inventory

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def policy(text: str = "policy p { read :- true. }", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "friends", "namespace": "search", "uid": "u1", "generation": 3},
        "spec": {"text": text, **more.pop("spec", {})},
        **more,
    }


def created_at(moment: datetime) -> dict[str, Any]:
    made = policy()
    return {**made, "metadata": {**made["metadata"], "creationTimestamp": timestamp(moment)}}


def reconcile(
    obj: dict[str, Any],
    revisions: list[Any],
    problem: str | None = "",
    *,
    used: bool = True,
    composed: str = "",
    missing: bool = False,
) -> Plan:
    return policies.reconcile(
        obj,
        inventory(*revisions),
        problem=problem,
        parameters=("owner",),
        composed=composed,
        missing=missing,
        used=used,
        seal=SEAL,
        now=NOW,
    )


def created(plan: Plan) -> list[dict[str, Any]]:
    return [dict(action.body) for action in plan.actions if isinstance(action, Create)]


def stored(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "uid": f"uid of {body['metadata']['name']}"}}


def status(plan: Plan) -> dict[str, Any]:
    (found,) = (action for action in plan.actions if isinstance(action, SetStatus))
    return dict(found.status)


def conditions(plan: Plan) -> dict[str, tuple[str, str]]:
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in status(plan)["conditions"]}


def rolled_out(state: str, reason: str, generation: int = 3, **more: Any) -> dict[str, Any]:
    about = {"message": "m", "observedGeneration": generation}
    condition = {"type": "RolledOut", "status": state, "reason": reason, **about}
    return {"conditions": [condition], **more}


def test_a_valid_policy_gets_a_revision_that_it_owns() -> None:
    (body,) = created(reconcile(policy(), []))
    assert body["metadata"]["name"] == f"friends-{body['spec']['hash'][:32]}"
    assert body["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert body["spec"]["revision"] == 1
    assert body["spec"]["mode"] == "Enforce"


def test_the_second_look_creates_nothing() -> None:
    revisions = [stored(body) for body in created(reconcile(policy(), []))]
    plan = reconcile(policy(), revisions)
    assert created(plan) == []
    assert status(plan)["latestRevision"] == 1


def test_another_mode_is_another_revision() -> None:
    revisions = [stored(body) for body in created(reconcile(policy(), []))]
    (body,) = created(reconcile(policy(spec={"mode": "Audit"}), revisions))
    assert (body["spec"]["revision"], body["spec"]["mode"]) == (2, "Audit")


INCLUDING = "policy friends includes base { }"
FIRST, SECOND = "policy friends {\n  read :- true.\n}\n", 'policy friends {\n  read :- sKeyIs("ada").\n}\n'


def taken(obj: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return a policy with the status of a plan."""
    return {**obj, "status": {**obj.get("status", {}), **status(plan)}}


def test_a_policy_with_the_clauses_of_others_has_revisions_that_need_no_other() -> None:
    obj = policy(INCLUDING)
    plan = reconcile(obj, [], composed=FIRST)
    (first,) = created(plan)
    assert first["spec"]["text"] == FIRST
    assert policies.genuine(first, SEAL)
    obj = taken(obj, plan)
    assert policies.revision_name(obj) == first["metadata"]["name"]
    assert policies.effective_revision(obj, inventory(stored(first))) == stored(first)
    assert created(reconcile(obj, [stored(first)], composed=FIRST)) == []


def test_what_changes_a_policy_that_is_included_makes_a_revision_of_those_that_include_it() -> None:
    obj = policy(INCLUDING)
    plan = reconcile(obj, [], composed=FIRST)
    (first,) = created(plan)
    obj = taken(obj, plan)
    assert policies.effective_revision(obj, inventory(stored(first))) == stored(first), "until it is checked"
    plan = reconcile(obj, [stored(first)], composed=SECOND)
    (second,) = created(plan)
    assert (second["spec"]["revision"], second["spec"]["text"]) == (2, SECOND)
    after = taken(obj, plan)
    both = inventory(stored(first), stored(second))
    assert policies.effective_revision(after, both) == stored(second)
    rejected = {**after, "status": {**after["status"], "rejectedRevision": second["metadata"]["name"],
                                    "stableRevision": first["metadata"]["name"]}}  # fmt: skip
    assert policies.effective_revision(rejected, both) == stored(first)


@pytest.mark.parametrize(("missing", "reason"), [(True, "IncludeMissing"), (False, "Invalid")])
def test_what_a_policy_included_may_go_and_what_was_in_force_stays(*, missing: bool, reason: str) -> None:
    obj = policy(INCLUDING)
    plan = reconcile(obj, [], composed=FIRST)
    (first,) = created(plan)
    obj = taken(obj, plan)
    plan = reconcile(obj, [stored(first)], "there is no policy base to include", missing=missing)
    assert created(plan) == []
    assert conditions(plan)["Accepted"] == ("False", reason)
    assert policies.effective_revision(taken(obj, plan), inventory(stored(first))) == stored(first)


def test_a_policy_that_includes_others_no_longer_is_its_own_text() -> None:
    obj = policy(INCLUDING)
    obj = taken(obj, reconcile(obj, [], composed=FIRST))
    changed = {**obj, "metadata": {**obj["metadata"], "generation": 4}, "spec": {"text": SECOND}}
    plan = reconcile(changed, [])
    assert [body["spec"]["text"] for body in created(plan)] == [SECOND]
    assert "composed" not in status(plan)


def test_an_invalid_policy_gets_no_revision_and_says_why() -> None:
    plan = reconcile(policy(), [], "spec.text:1:8: expected a name")
    assert created(plan) == []
    assert conditions(plan) == {"Accepted": ("False", "Invalid"), "Ready": ("False", "Invalid")}
    assert [action.reason for action in plan.actions if isinstance(action, Emit)] == ["Invalid"]


def test_what_is_not_yet_checked_says_nothing_at_first() -> None:
    plan = reconcile(created_at(NOW), [], None)
    assert plan.actions == [Requeue(UNSAID_SECONDS)]


def test_what_was_said_of_a_spec_holds_until_it_is_checked_again() -> None:
    said = {**policy(), "status": {"observedGeneration": 3}}
    assert reconcile(said, [], None).actions == [Requeue(UNSAID_SECONDS)]
    former = {**created_at(NOW - timedelta(days=1)), "status": {"observedGeneration": 2}}
    assert conditions(reconcile(former, [], None))["Accepted"] == ("Unknown", "Checking")


def test_what_is_not_checked_for_long_is_unknown() -> None:
    plan = reconcile(created_at(NOW - timedelta(seconds=UNSAID_SECONDS)), [], None)
    assert created(plan) == []
    assert conditions(plan) == {"Accepted": ("Unknown", "Checking"), "Ready": ("Unknown", "Checking")}


def test_ready_says_what_is_in_force() -> None:
    table = [
        ({}, False, ("True", "Unused")),
        ({}, True, ("Unknown", "Pending")),
        (rolled_out("True", "Stable", stableRevision="x"), True, ("True", "Stable")),
        (rolled_out("False", "Progressing", stableRevision="x"), True, ("False", "Progressing")),
        (rolled_out("False", "Progressing"), True, ("False", "Progressing")),
        (rolled_out("False", "RolledBack", stableRevision="x"), True, ("False", "RolledBack")),
        (rolled_out("True", "Stable", generation=2, stableRevision="x"), True, ("Unknown", "Pending")),
    ]
    for known, used, want in table:
        plan = reconcile(policy(status=known), [], used=used)
        assert conditions(plan)["Ready"] == want, known


def test_a_policy_on_its_way_out_is_left_alone() -> None:
    obj = policy()
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert reconcile(obj, []).actions == []


def forged(**changes: Any) -> dict[str, Any]:
    """A revision that somebody else has written: it has the right name and hash, but another text."""
    (made,) = created(reconcile(policy(), []))
    metadata = {**made["metadata"], "annotations": {}, "uid": "forged"}
    return {**made, "metadata": metadata, "spec": {**made["spec"], "text": "policy p { update :- true. }"}, **changes}


def resealed(obj: dict[str, Any], seal: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ANNOTATION: seal}}}


(GENUINE,) = (stored(body) for body in created(reconcile(policy(), [])))
WITH_SEAL_OF_ANOTHER = resealed(forged(), GENUINE["metadata"]["annotations"][ANNOTATION])


@pytest.mark.parametrize(
    "other",
    [
        forged(),
        WITH_SEAL_OF_ANOTHER,
        resealed(forged(spec=GENUINE["spec"]), ""),
        resealed(forged(), "\u00e9"),
        Seal(b"another secret").put_on(GENUINE),
        SEAL.put_on(forged()),
        SEAL.put_on({**GENUINE, "spec": {**GENUINE["spec"], "hash": "0" * 64}}),
        {**GENUINE, "spec": {**GENUINE["spec"], "revision": 99}},
        {**GENUINE, "spec": {**GENUINE["spec"], "policy": "others"}},
        {**GENUINE, "metadata": {**GENUINE["metadata"], "namespace": "elsewhere"}},
        {
            **GENUINE,
            "metadata": {**GENUINE["metadata"], "name": f"others-{GENUINE['spec']['hash'][: policies.HASH_DIGITS]}"},
        },
    ],
)
def test_a_revision_counts_only_if_the_operator_made_it_and_its_content_matches(other: dict[str, Any]) -> None:
    assert policies.genuine(GENUINE, SEAL)
    assert not policies.genuine(other, SEAL)
    known = inventory(other)
    assert policies.effective_revision(policy(), known) is None
    assert policies.effective_revision(policy(), inventory(GENUINE)) is GENUINE
    assert known.forged() == [other]


def test_another_text_with_the_same_first_digits_of_its_hash_is_not_taken_for_the_present_one() -> None:
    twin = {**GENUINE, "spec": {**GENUINE["spec"], "text": "policy p { update :- true. }"}}
    twin["spec"]["hash"] = policies.content_hash(GENUINE)[:10] + "0" * 54
    for known in ({}, {"stableRevision": GENUINE["metadata"]["name"]}):
        every = Inventory(lambda _: True)
        every.put(twin)
        assert policies.effective_revision(policy(status=known), every) is None


def test_a_revision_from_before_can_still_be_gone_back_to() -> None:
    content = GENUINE["spec"]["hash"]
    former, shorter = (
        SEAL.put_on({**GENUINE, "metadata": {**GENUINE["metadata"], "name": f"friends-{content[:digits]}"}})
        for digits in (10, 4)
    )
    assert policies.genuine(former, SEAL)
    assert not policies.genuine(shorter, SEAL)
    obj = policy("policy p { update :- true. }", status={"stableRevision": former["metadata"]["name"]})
    assert policies.effective_revision(obj, inventory(former)) == former


def test_what_stands_in_a_revision_s_place_is_replaced() -> None:
    plan = reconcile(policy(status={"latestRevision": 4}), [forged()])
    assert [type(action).__name__ for action in plan.actions[:2]] == ["Delete", "Create"]
    (body,) = created(plan)
    assert (body["spec"]["text"], body["spec"]["revision"]) == (policy()["spec"]["text"], 5)
    assert policies.genuine(body, SEAL)
    assert [action.reason for action in plan.actions if isinstance(action, Emit)] == ["RevisionReplaced"]
    assert not created(reconcile(policy(), [forged()], None)), "nothing is touched before the text is checked"


def test_a_forged_revision_that_cannot_go_yet_is_waited_for() -> None:
    stuck = forged()
    stuck["metadata"]["deletionTimestamp"] = "2026-11-22T09:00:00Z"
    in_force = rolled_out("True", "Stable", stableRevision="x", latestRevision=4)
    plan = reconcile(policy(status=in_force), [stuck])
    assert not [action for action in plan.actions if isinstance(action, Create | Delete)]
    assert status(plan)["latestRevision"] == 4, "or each look would write another status"
    assert conditions(plan) == {"Accepted": ("True", "Accepted"), "Ready": ("False", "RevisionBlocked")}
    assert conditions(reconcile(policy(), [stuck], "line 1"))["Ready"] == ("False", "Invalid")
    assert [action.reason for action in plan.actions if isinstance(action, Emit)] == ["RevisionIgnored"]


def test_what_only_pretends_to_be_a_revision_is_ignored_and_told() -> None:
    pretender = forged(metadata={**forged()["metadata"], "name": "friends-0123456789"})
    older = {**pretender, "spec": {**pretender["spec"], "revision": 99}}
    obj = policy(status={"stableRevision": "friends-0123456789", "rejectedRevision": policies.revision_name(policy())})
    assert policies.effective_revision(obj, inventory(GENUINE, older)) is None
    plan = reconcile(obj, [GENUINE, older])
    assert status(plan)["latestRevision"] == 1
    assert not [action for action in plan.actions if isinstance(action, Delete)]
    assert [action.reason for action in plan.actions if isinstance(action, Emit)] == ["RevisionIgnored"]


def test_the_inventory_follows_a_revision_that_loses_its_seal_and_one_that_takes_its_place() -> None:
    known = inventory(GENUINE)
    known.put(resealed(GENUINE, ""))
    assert (known.all("PolicyRevision"), len(known.forged())) == ([], 1)
    known.put(GENUINE)
    assert (known.all("PolicyRevision"), known.forged()) == ([GENUINE], [])
    known.put(forged())
    known.remove(reference(GENUINE))
    assert (known.all("PolicyRevision"), known.forged()) == ([], [])
    bare = Inventory()
    bare.put(GENUINE)
    assert bare.all("PolicyRevision") == [], "without a seal to ask for, none counts"


@given(st.lists(st.text(min_size=1, max_size=3), max_size=12), st.integers(0, 4), st.integers(0, 11))
def test_history_keeps_its_limit_and_whatever_is_referred_to(texts: list[str], limit: int, stable: int) -> None:
    revisions: list[dict[str, Any]] = []
    for text in texts:
        revisions += [stored(body) for body in created(reconcile(policy(text), revisions))]
    assert [revision["spec"]["revision"] for revision in revisions] == list(range(1, len(set(texts)) + 1))
    if not revisions:
        return
    held = revisions[stable % len(revisions)]["metadata"]["name"]
    obj = policy(texts[-1], spec={"revisionHistoryLimit": limit}, status={"stableRevision": held})
    gone = {action.target.name for action in reconcile(obj, revisions).actions if isinstance(action, Delete)}
    left = [revision for revision in revisions if revision["metadata"]["name"] not in gone]
    assert held not in gone
    assert policies.revision_name(obj) not in gone
    assert len(left) <= limit + 2
    spare = [
        revision["spec"]["revision"]
        for revision in left
        if revision["metadata"]["name"] not in (held, policies.revision_name(obj))
    ]
    assert all(
        revision["spec"]["revision"] < min(spare, default=0) or not spare
        for revision in revisions
        if revision["metadata"]["name"] in gone
    )
