# SPDX-License-Identifier: BSD-2-Clause
"""A verdict counts for the version of an object that was checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from shai_operator.control.loop import Loop
from shai_operator.control.verdicts import Verdicts
from shai_operator.reconcile import dependents
from shai_operator.reconcile.objects import Inventory, Reference, name, reference
from shai_operator.reconcile.sizes import MOST_BYTES
from tests.reconcile.builders import inventory, resource

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.monitors.validator import Validator
    from shai_operator.reconcile.objects import Object

PIPELINE = resource("Pipeline", "p", {"tasks": ["t"]})
TASK = resource("Task", "t", {"taint": {"name": "open"}})
UNUSED = resource("Task", "unused")
DEFINITIONS = Reference("Definitions", "", "search")


async def checked(known: Inventory, asked: list[str] | None = None) -> Verdicts:
    """Return the verdicts of a parser that finds no problem; ``asked`` gets the names of the objects."""

    async def check(objects: list[Object], *, alone: bool) -> SimpleNamespace:
        del alone
        if asked is not None:
            asked[:] = [name(obj) for obj in objects]
        return SimpleNamespace(problems=(), parameters={}, composed={})

    loop = Loop(known, cast("Executor", None))
    validator = cast("Validator", SimpleNamespace(check=check))
    verdicts = Verdicts(loop, validator, cast("ReleaseStore", None))
    await verdicts.reconcile(DEFINITIONS)
    return verdicts


def again(obj: Object) -> Object:
    """Return a later generation of an object."""
    return {**obj, "metadata": {**obj["metadata"], "generation": obj["metadata"]["generation"] + 1}}


async def test_a_verdict_on_an_earlier_version_of_a_pipeline_does_not_count() -> None:
    known = inventory(PIPELINE, TASK)
    verdicts = await checked(known)
    assert set(verdicts.about(PIPELINE)) == {reference(PIPELINE), reference(TASK)}
    assert set(verdicts.about(again(PIPELINE))) == {reference(TASK)}


async def test_a_namespace_waits_for_what_its_pipelines_run() -> None:
    for changed, waits in ((PIPELINE, True), (TASK, True), (UNUSED, False)):
        known = inventory(PIPELINE, TASK, UNUSED)
        verdicts = await checked(known)
        assert not verdicts.pending("search")
        known.put(again(changed))
        assert verdicts.pending("search") is waits
        assert not verdicts.pending("other")
        await verdicts.reconcile(DEFINITIONS)
        assert not verdicts.pending("search")


def test_what_was_changed_and_changed_back_is_checked_again() -> None:
    """The operator may have missed what was in between; without a verdict it would be unchecked for ever."""
    known = inventory(PIPELINE, TASK)
    assert DEFINITIONS in set(dependents.of(again(TASK), TASK, known))
    assert DEFINITIONS not in set(dependents.of(TASK, TASK, known))


async def test_what_a_namespace_may_define_is_limited_and_the_newest_is_too_much() -> None:
    half = {"text": "x" * (MOST_BYTES // 2)}
    policies = [
        resource("Policy", called, half, creationTimestamp=f"2026-06-01T12:00:0{number}Z")
        for called, number in (("new", 2), ("old", 1))
    ]
    known = inventory(*policies, PIPELINE, TASK)
    asked: list[str] = []
    verdicts = await checked(known, asked)
    assert (
        "the definitions of the namespace, older ones first, have more than"
        in verdicts.found[reference(policies[0])].problem
    )
    assert not any(verdicts.found[reference(obj)].problem for obj in (policies[1], PIPELINE, TASK))
    assert sorted(asked) == ["old", "p", "t"], "the parser does not get it"
    known.remove(reference(policies[1]))
    assert not (await checked(known)).found[reference(policies[0])].problem
