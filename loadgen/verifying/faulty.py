# SPDX-License-Identifier: BSD-2-Clause
"""Checks front ends that are broken on purpose: a support without its entry in the log, a query in a topic's place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from loadgen.driving.protocol import RefusedError, logged_in
from loadgen.stacks import desk
from loadgen.stacks.launcher import BROKEN, CONFINED
from loadgen.stacks.ports import free_port
from loadgen.verifying.checks import EnforcementError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.datasets.population import Person, Population
    from loadgen.driving.beside import Document
    from loadgen.driving.protocol import FrontEnd
    from loadgen.stacks.launcher import Launcher
    from loadgen.stacks.member import Member

CORRECT = "none"
FAULTS = {
    "skip-entry": "without an entry in the log",
    "forge-entry": "after an entry in a colleague's name",
    "date-ahead": "after an entry that is dated ahead",
}
"""Faults of the support, and how it reads with them."""

BROKEN_TOPICS = replace(BROKEN, faults={**BROKEN.faults, "INTERESTS_FAULT": "query-as-topic"})
"""With the broken search engine: the newest query becomes a topic."""


@dataclass(frozen=True)
class Subject:
    """A member, its manifests and the people of its data, and where it serves searches."""

    member: Member
    bundle: Sequence[dict[str, Any]]
    people: Population
    front_end: FrontEnd


def accesses(launcher: Launcher, subject: Subject, tell: Callable[[str], None]) -> dict[str, Any]:
    """Let an employee read a document, and another one with each fault of the support, in twins; return the outcomes.

    EnforcementError unless the first is read and logged, and each of the others is refused and leaves no entry. All
    have the member's log, which is among its data.
    """
    member, log = subject.member, desk.log(subject.bundle, subject.member.pipeline)
    employee = desk.employees(subject.bundle, member.data)[0]
    own, other = _unread(subject, log)
    outcomes = {}
    for fault in (CORRECT, *FAULTS):
        tell(f"the support, with fault {fault}")
        document = own if fault == CORRECT else other
        before = desk.entries(member.data, log)
        reason = _reading(launcher, subject.front_end.address[0], fault, employee, document)
        added = desk.entries(member.data, log) - before
        outcomes[fault] = {"refused": reason, "entries": added.total()}
        judge(fault, reason, added.total(), document)
    return {"employee": employee.name, "read": own.name, "refused": other.name, "outcomes": outcomes}


def judge(fault: str, reason: str, entries: int, document: Document) -> None:
    """Raise EnforcementError unless a document was read after its entry, and not with a fault, which leaves none."""
    if fault == CORRECT:
        if reason or entries != 1:
            raise EnforcementError(
                f"{document.name}: the support did not read it after its entry ({entries} were written): {reason}; "
                "so its faults would prove nothing"
            )
        return
    if not reason:
        raise EnforcementError(f"{document.name}: the support read it {FAULTS[fault]}")
    if entries:
        raise EnforcementError(f"{document.name}: the support with fault {fault} left an entry in the log")


def topics(front_end: FrontEnd, person: Person) -> str:
    """Have topics made of what a person has searched for, with a query among them; return why that is refused."""
    with logged_in(front_end, person) as session:
        try:
            made = session.topics()
        except RefusedError as error:
            return str(error)
    raise EnforcementError(f"a query of {person.name} became a topic; beside it there are: {', '.join(made) or 'none'}")


def lines(support: dict[str, Any]) -> list[str]:
    """Return what `accesses` found as lines for people."""
    who = support["employee"]
    return [
        f"{who} of the support reads {support['read']}, a user's private document: allowed, after its entry in the log",
        f"{who} reads another one, with a support broken so that it does",
        *(f"  {how}: refused" for how in FAULTS.values()),
    ]


def _unread(subject: Subject, log: str) -> tuple[Document, Document]:
    """Return two documents that the log has no entry about."""
    known = {name for _, name in desk.entries(subject.member.data, log)}
    found = desk.find(subject.member.data, subject.people.people, subject.front_end)
    own, other = (*islice((document for document in found if document.name not in known), 2), None, None)[:2]
    if own is None or other is None:
        raise EnforcementError(f"{log} has entries about all documents of users, so reading them would prove nothing")
    return own, other


def _reading(launcher: Launcher, host: str, fault: str, employee: Person, document: Document) -> str:
    """Let an employee read a document in a twin whose support has a fault; return why it is refused, or nothing."""
    variant = replace(CONFINED, name=f"support-{fault}", faults={"SUPPORT_FAULT": fault})
    twin = launcher.launch(variant, (host, free_port(host)))
    twin.analyze()
    try:
        with logged_in(twin.serve_beside(desk.TASK), employee) as session:
            try:
                session.document(document.number, document.name)
            except RefusedError as error:
                return str(error)
        return ""
    finally:
        launcher.end(variant)
