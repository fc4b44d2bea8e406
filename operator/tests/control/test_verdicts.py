# SPDX-License-Identifier: BSD-2-Clause
"""A verdict counts for the version of an object that was checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from shai_operator.control.loop import Loop
from shai_operator.control.verdicts import Verdicts
from shai_operator.reconcile import dependents
from shai_operator.reconcile.objects import Inventory, Reference, reference
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


async def checked(known: Inventory) -> Verdicts:
    """Return the verdicts of a parser that finds no problem."""

    async def check(_: object, *, alone: bool) -> SimpleNamespace:
        del alone
        return SimpleNamespace(problems=(), parameters={})

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
