# SPDX-License-Identifier: BSD-2-Clause
"""What happens beside searches in each run: the support reads documents of users, and users have topics made."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from loadgen.driving.beside import Desk, Interests
from loadgen.driving.metrics import ANY, CHOSEN, FAILED, OK, REFUSED
from loadgen.driving.orders import Order, milliseconds
from loadgen.measuring.measurement import MeasurementError, believe
from loadgen.stacks import desk, interests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.datasets.population import Population
    from loadgen.driving.metrics import Series
    from loadgen.driving.protocol import FrontEnd
    from loadgen.measuring.measurement import Load
    from loadgen.plan import Plan
    from loadgen.stacks.member import Member
    from loadgen.stacks.stack import Stack

MODE = "shai"
"""The mode in which it happens: others do not refuse what must not be read."""

ACCESSES = 200
"""How many documents the support reads in a run, as in the evaluation of Thoth."""

VISITS = 24
"""How many users have topics made."""


@dataclass(frozen=True)
class Site:
    """A member on this machine, with the manifests in force on it and the people of its data."""

    bundle: Sequence[dict[str, Any]]
    member: Member
    people: Population

    @property
    def programs(self) -> Path:
        """The directory with what the search service says of topics."""
        return self.member.image / "syse"


def tasks(stack: Stack) -> set[str]:
    """Return the tasks of a stack that do something beside searches."""
    return {desk.TASK, interests.TASK} & stack.beside.keys()


def missing(plan: Plan, member: Member) -> str:
    """Say why tasks that do something beside searches do nothing in a measurement; empty: they do."""
    if MODE not in plan.modes:
        return f"The support read nothing, and nobody had topics made, because mode {MODE} was not measured."
    if member.twins:
        return "The support read nothing, and nobody had topics made: the member's documents are on another host."
    return ""


def run(load: Load, stack: Stack, site: Site, plan: Plan) -> dict[str, Any]:
    """Search as usual, while the support and users do what else there is; return what was counted.

    MeasurementError unless each document was read after its entry in the log, and there are no other entries.
    """
    to = stack.front_end
    order = Order(
        to.url, to.pipeline, to.service, 8, plan.slice_seconds, plan.concurrent_users, plan.seed, signed=to.signed,
        scenario=plan.scenario, mode=stack.mode,
        desk=_desk(stack.beside[desk.TASK], to, site, plan.seed) if desk.TASK in stack.beside else None,
        interests=_interests(stack.beside[interests.TASK], site) if interests.TASK in stack.beside else None,
    )  # fmt: skip
    name = desk.log(site.bundle, site.member.pipeline) if order.desk else ""
    before = desk.entries(site.member.data, name) if order.desk else Counter()
    outcome = load.run(order)
    believe(outcome, "searching while the support reads documents")
    found: dict[str, Any] = {}
    if order.desk is not None:
        logged = desk.entries(site.member.data, name) - before
        found["support"] = support(order.desk, outcome.counted, logged, outcome.errors)
    if order.interests is not None:
        found["interests"] = topics(order.interests, outcome.counted, outcome.errors)
    return found


def doubts(stack: Stack, found: Mapping[str, Any]) -> list[str]:
    """Return what could not be counted, as notes."""
    if desk.TASK in stack.beside and "support" not in found:
        return ["The support read nothing: no user finds a private document of their own."]
    return []


def support(wanted: Desk, counted: Series, logged: Counter[tuple[str, str]], errors: Sequence[str]) -> dict[str, Any]:
    """Return what the support did; MeasurementError unless all was read, and logged once each, and nothing else was."""
    read = counted.accesses[OK]
    expected = Counter((person.name, document.name) for person, document in wanted.accesses)
    if read != expected.total() or logged != expected:
        failed = (
            f"the support: of {expected.total()} documents {read} were read, {counted.accesses[REFUSED]} refused, "
            f"{counted.accesses[FAILED]} failed; its log has {logged.total()} new entries, of which "
            f"{(logged & expected).total()} are about them"
        )
        raise MeasurementError("; ".join([failed, *errors]), public=failed)
    return {
        "accesses": expected.total(),
        "read": read,
        "logged": logged.total(),
        "refused": counted.accesses[REFUSED],
        "milliseconds": milliseconds(counted.access_times),
    }


def topics(wanted: Interests, counted: Series, errors: Sequence[str]) -> dict[str, Any]:
    """Return what interests led to; MeasurementError unless all have topics, and advertisements are about them."""
    made = counted.topics[OK]
    if made != wanted.visits or counted.advertisements[ANY] or not counted.advertisements[CHOSEN]:
        failed = (
            f"topics were made for {made} of {wanted.visits} users, {counted.topics[REFUSED]} were refused; of their "
            f"advertisements {counted.advertisements[CHOSEN]} are about their topics, "
            f"{counted.advertisements[ANY]} are not"
        )
        raise MeasurementError("; ".join([failed, *errors]), public=failed)
    return {"users": made, "advertisements": counted.advertisements[CHOSEN]}


def _desk(at: FrontEnd, service: FrontEnd, site: Site, seed: int) -> Desk | None:
    """Return what the support has to do; None if no user finds a private document."""
    employees = desk.employees(site.bundle, site.member.data)
    people = list(site.people.people)
    random.Random(seed).shuffle(people)  # noqa: S311 - reproducible, not secret
    documents = tuple(islice(desk.find(site.member.data, people, service), ACCESSES // len(employees)))
    return Desk(at.url, at.service, tuple(employees), documents) if documents else None


def _interests(at: FrontEnd, site: Site) -> Interests:
    queries = interests.telling(site.people.queries, interests.words(site.programs))
    return Interests(at.url, at.service, VISITS, queries, interests.advertisements(site.programs))
