# SPDX-License-Identifier: BSD-2-Clause
"""Readings of what members keep for administrators: of the own namespace's members only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile import member_readings
from shai_operator.reconcile.actions import Delete, Requeue
from shai_operator.reconcile.member_readings import Answered, Ask, Failed
from shai_operator.reconcile.objects import reference
from tests.reconcile.builders import OWNED, inventory, message, resource, status_of, succeeded, tenant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.member_readings import Decision
    from shai_operator.reconcile.objects import Object

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
OTHERS = {"namespace": "mail", "namespaceUID": tenant("mail").uid}
FORMER = {"namespace": "search", "namespaceUID": tenant("search", 2).uid}
PIPELINE = resource("Pipeline", "p", {"tasks": ["index"], "pool": "default"})
RUN = resource("TaskRun", "r", {"pipeline": "p", "task": "index"}, {"member": "default-2"})
WAITS = resource("TaskRun", "waits", {"pipeline": "p", "task": "index"})
LOG = {"pipeline": "p", "log": {"task": "index", "previous": False}}


def pool(*names: str) -> Object:
    rows = [
        {"name": "default-0", "ordinal": 0, **OTHERS},
        {"name": "default-1", "ordinal": 1, **OWNED},
        {"name": "default-2", "ordinal": 2, **OWNED},
        {"name": "default-3", "ordinal": 3, **FORMER},
        {"name": "default-4", "ordinal": 4},
    ]
    spec = {"allowedNamespaces": {"names": list(names)}}
    return resource("JailPool", "default", spec, {"members": rows, "namespaces": []})


def reading(spec: Mapping[str, Any], **known: Any) -> Object:
    return resource("MemberReading", "one", {"user": "olga", "publicKey": "a2V5", **spec}, known)


def decide(
    spec: Mapping[str, Any],
    *,
    serves: tuple[str, ...] = ("search", "mail"),
    silent: Mapping[str, str] | None = None,
    known: Answered | Failed | None = None,
) -> Decision:
    mail = resource("Pipeline", "p", {"tasks": ["index"], "pool": "default"}, namespace="mail")
    post = resource("TaskRun", "post", {"pipeline": "p", "task": "index"}, {"member": "default-0"}, namespace="mail")
    everything = inventory(pool(*serves), PIPELINE, RUN, WAITS, mail, post)
    return member_readings.reconcile(reading(spec), {} if silent is None else silent, known, everything, NOW)


@pytest.mark.parametrize(
    ("spec", "member", "question"),
    [
        (LOG, "default-1", {"log": {"pipeline": "p", "task": "index", "previous": False}}),
        ({**LOG, "member": "default-2"}, "default-2", {"log": {"pipeline": "p", "task": "index", "previous": False}}),
        ({"log": {"taskRun": "r"}}, "default-2", {"log": {"pipeline": "p", "task": "index"}}),
        (
            {"pipeline": "p", "explain": {"conduit": "/a", "task": "index"}},
            "default-1",
            {"explain": {"pipeline": "p", "conduit": "/a", "task": "index"}},
        ),
        ({"pipeline": "p", "audit": {"kinds": ["denial"]}}, "default-1", {"audit": {"kinds": ["denial"]}}),
    ],
)
def test_a_member_of_the_namespace_is_asked(spec: dict[str, Any], member: str, question: dict[str, Any]) -> None:
    decision = decide(spec)
    assert decision.request == Ask(member, {"reader": "olga", "recipient": "a2V5", **question})
    assert decision.plan.actions == []


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({**LOG, "pipeline": "q"}, "NotFound", "namespace search has no Pipeline q"),
        ({"log": {"taskRun": "q"}}, "NotFound", "namespace search has no TaskRun q"),
        ({"log": {"taskRun": "post"}}, "NotFound", "namespace search has no TaskRun post"),
        ({"log": {"taskRun": "waits"}}, "NotFound", "has not started on any member yet"),
        (
            {**LOG, "member": "default-0"},
            "NoSuchMember",
            "no default-0 for this namespace; it has: default-1, default-2",
        ),
        (
            {**LOG, "member": "default-3"},
            "NoSuchMember",
            "no default-3 for this namespace; it has: default-1, default-2",
        ),
        (
            {**LOG, "member": "default-4"},
            "NoSuchMember",
            "no default-4 for this namespace; it has: default-1, default-2",
        ),
        ({**LOG, "member": "other-0"}, "NoSuchMember", "no other-0 for this namespace; it has: default-1, default-2"),
    ],
)
def test_no_other_member_is_asked(spec: dict[str, Any], reason: str, text: str) -> None:
    """Not one of another namespace, of a namespace that had this name before, or of nobody."""
    decision = decide(spec)
    assert (succeeded(decision), decision.request) == (("False", reason), None)
    assert text in message(decision)
    assert "mail" not in message(decision)
    assert "sealed" not in status_of(decision)


def test_a_pool_that_does_not_serve_the_namespace_is_not_asked() -> None:
    decision = decide(LOG, serves=("mail",))
    assert (succeeded(decision), decision.request) == (("False", "NamespaceNotAllowed"), None)


def test_the_first_member_that_can_answer_is_asked() -> None:
    chosen = decide(LOG, silent={"default-1": "it is away"}).request
    assert chosen is not None
    assert chosen.member == "default-2"
    decision = decide({**LOG, "member": "default-1"}, silent={"default-1": "it is away"})
    assert succeeded(decision) == ("False", "Unreachable")
    assert message(decision) == "member default-1 cannot be asked: it is away"


def test_members_that_are_not_known_yet_are_waited_for() -> None:
    everything = inventory(pool("search"), PIPELINE)
    decision = member_readings.reconcile(reading(LOG), None, None, everything, NOW)
    assert succeeded(decision) == ("Unknown", "Pending")
    assert "completionTime" not in status_of(decision)
    assert any(isinstance(action, Requeue) for action in decision.plan.actions)


def test_an_answer_is_passed_on_and_deleted_a_minute_later() -> None:
    decision = decide(LOG, known=Answered("default-1", "c2VhbGVk"))
    found = status_of(decision)
    assert succeeded(decision) == ("True", "Complete")
    assert (found["member"], found["sealed"]) == ("default-1", "c2VhbGVk")
    for seconds, gone in ((59, False), (60, True)):
        one, at = reading(LOG, **found), NOW + timedelta(seconds=seconds)
        after = member_readings.reconcile(one, {}, None, inventory(), at)
        assert after.plan.actions == [Delete(reference(one), "uid-one") if gone else Requeue(1.0)]
        assert after.request is None, "what is answered is not asked again"


def test_an_answer_of_a_member_that_belongs_to_another_namespace_meanwhile_is_not_passed_on() -> None:
    decision = decide(LOG, known=Answered("default-0", "c2VhbGVk"))
    assert succeeded(decision) == ("False", "NoSuchMember")
    assert "sealed" not in status_of(decision)
    withdrawn = decide(LOG, serves=(), known=Answered("default-1", "c2VhbGVk"))
    assert succeeded(withdrawn) == ("False", "NamespaceNotAllowed")
    assert "sealed" not in status_of(withdrawn)


def test_a_namespace_does_not_fill_the_operator_s_memory() -> None:
    """Those before are answered; what was refused does not count, and neither do other namespaces."""
    base = inventory(pool("search"), PIPELINE)
    sealed = {"sealed": "c2VhbGVk", "completionTime": "2026-06-01T12:00:00Z"}
    refused = {"completionTime": "2026-06-01T12:00:00Z"}
    for number in range(member_readings.MOST):
        base.put(resource("MemberReading", f"a{number:02}", reading(LOG)["spec"], sealed if number % 2 else {}))
        base.put(resource("MemberReading", f"b{number:02}", reading(LOG)["spec"], refused))
        base.put(resource("MemberReading", f"c{number:02}", reading(LOG)["spec"], namespace="mail"))
    last = resource("MemberReading", f"a{member_readings.MOST - 1:02}", reading(LOG)["spec"])
    assert member_readings.reconcile(last, {}, None, base, NOW).request is not None
    decision = member_readings.reconcile(reading(LOG), {}, None, base, NOW)
    assert (succeeded(decision), decision.request) == (("False", "TooMany"), None)
    answered = member_readings.reconcile(reading(LOG), {}, Answered("default-1", "c2VhbGVk"), base, NOW)
    assert succeeded(answered) == ("True", "Complete"), "who was asked already may answer"

    # Of one second: what has been asked counts, whatever its name.
    crowd = [resource("MemberReading", f"z{number:02}", reading(LOG)["spec"]) for number in range(member_readings.MOST)]
    known = inventory(pool("search"), PIPELINE, *crowd)
    asked = {reference(one) for one in crowd}
    decision = member_readings.reconcile(reading(LOG), {}, None, known, NOW, asked=asked)
    assert (succeeded(decision), decision.request) == (("False", "TooMany"), None)
    assert member_readings.reconcile(crowd[-1], {}, None, known, NOW, asked=asked).request is not None, "it goes on"


def test_readings_that_stay_when_they_are_deleted_count() -> None:
    """They have their answers as long as something keeps them, such as a dependent in foreground deletion."""
    known = inventory(pool("search"), PIPELINE)
    sealed = {"sealed": "c2VhbGVk", "completionTime": "2026-06-01T12:00:00Z"}
    gone = {"deletionTimestamp": "2026-06-01T12:01:00Z", "finalizers": ["foregroundDeletion"]}
    for number in range(member_readings.MOST):
        assert member_readings.reconcile(reading(LOG), {}, None, known, NOW).request is not None
        known.put(resource("MemberReading", f"d{number:02}", reading(LOG)["spec"], sealed, **gone))
    decision = member_readings.reconcile(reading(LOG), {}, None, known, NOW)
    assert (succeeded(decision), decision.request) == (("False", "TooMany"), None)


def test_a_failure_is_written() -> None:
    decision = decide(LOG, known=Failed("default-1", "NotRecorded", "it cannot record"))
    assert (succeeded(decision), message(decision)) == (("False", "NotRecorded"), "it cannot record")
