# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts: the problems of each object. The definitions of a namespace are checked together.

Applying five hundred policies causes a few checks, not five hundred, because a check covers everything that has changed
before it starts, and the next one begins only some times as long after it as it took.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from shai_operator.monitors.validator import MISSING, messages
from shai_operator.reconcile import definitions, dependents, references, shares, sizes, tenancy
from shai_operator.reconcile.bundles import ReleaseError
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import Reference, name, reference, uid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.control.loop import Loop
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.monitors.validator import Answer, Problem, Validator
    from shai_operator.reconcile.objects import Object

_KINDS = ("Policy", "FactSource", "Task")
_OVERLAP = "overlap"
_REST = 4
_LEAST_REST_SECONDS, _LONGEST_REST_SECONDS = 0.05, 15.0
"""The definitions of a namespace are not checked for so many times as long as their last check took. Shorter rests
save nothing."""


class Verdicts:
    """The controller of namespaces. `found` has the verdicts for the other controllers."""

    def __init__(self, loop: Loop, validator: Validator, releases: ReleaseStore) -> None:
        self.found: dict[Reference, Verdict] = {}
        """Verdicts by object. An object without an entry has not been checked yet."""
        self._loop = loop
        self._validator = validator
        self._releases = releases
        self._checked: dict[Reference, tuple[str, int]] = {}
        self._rests: dict[str, float] = {}
        """By namespace: when its definitions may be checked again, by the monotonic clock."""

    async def reconcile(self, ref: Reference) -> float | None:
        """Check a namespace's definitions, and reconcile the objects whose verdict has changed."""
        began = time.monotonic()
        if began < self._rests.get(ref.name, began):
            return self._rests[ref.name] - began
        await self._judge_all(ref)
        ended = time.monotonic()
        rest = min(_REST * (ended - began), _LONGEST_REST_SECONDS)
        if rest >= _LEAST_REST_SECONDS:
            self._rests[ref.name] = ended + rest
        return None

    async def _judge_all(self, ref: Reference) -> None:
        inventory = self._loop.inventory
        everything = [obj for kind in (*_KINDS, "Pipeline") for obj in inventory.all(kind, ref.name)]
        present = {reference(obj): obj for obj in everything}
        beyond = sizes.beyond(everything, inventory)
        shared = [obj for obj in everything if obj["kind"] in _KINDS and reference(obj) not in beyond]
        pipelines = [obj for obj in everything if obj["kind"] == "Pipeline" and reference(obj) not in beyond]
        problems: dict[Reference, list[Problem]] = {}
        parameters: dict[str, tuple[str, ...]] = {}
        composed: dict[str, str] = {}
        # Pipelines of two pools run on two monitors, and may have the same paths.
        for pool in sorted({references.pool(pipeline) for pipeline in pipelines}) or [""]:
            own = [pipeline for pipeline in pipelines if references.pool(pipeline) == pool]
            answer = await self._check(pool, ref.name, [*shared, *tenancy.principals(inventory, ref.name)], own)
            for problem in answer.problems:
                problems.setdefault(problem.object, []).append(problem)
            parameters.update(answer.parameters)
            composed.update(answer.composed)
        for gone in [known for known in self.found if known.namespace == ref.name and known not in present]:
            del self.found[gone], self._checked[gone]
        for target, obj in present.items():
            too_much = Verdict(beyond[target]) if target in beyond else None
            self._judge(target, obj, too_much or _verdict(obj, problems.get(target, ()), parameters, composed))

    async def _check(self, pool: str, space: str, shared: Sequence[Object], own: Sequence[Object]) -> Answer:
        """Check a pool's pipelines together; if the wrong one of two with the same conduits got them, check again."""
        inventory = self._loop.inventory
        in_force = await self._in_force(pool, space)
        ordered = definitions.precedence(own, in_force, {}, inventory)
        answer = await self._validator.check([*shared, *ordered], alone=True)
        if not any(problem.code == _OVERLAP for problem in answer.problems):
            return answer
        found: dict[Reference, list[Problem]] = {}
        for problem in answer.problems:
            found.setdefault(problem.object, []).append(problem)
        verdicts = {reference(obj): _verdict(obj, found.get(reference(obj), ()), {}, {}) for obj in (*shared, *own)}
        again = definitions.precedence(own, in_force, verdicts, inventory)
        return answer if again == ordered else await self._validator.check([*shared, *again], alone=True)

    async def _in_force(self, pool: str, space: str) -> list[str]:
        """Return the names of a namespace's pipelines in its stable release in a pool."""
        inventory = self._loop.inventory
        obj = inventory.find("JailPool", "", pool)
        stable = str(shares.entry(obj, space, inventory).get("stableRelease") or "") if obj else ""
        try:
            stored = (await self._releases.named([stable])).get(stable) if stable else None
        except ReleaseError:
            return []  # the pool's own controller reports it; definitions are checked nevertheless
        return (
            [name(pipeline) for pipeline in stored.of_kind("Pipeline")] if stored and stored.namespace == space else []
        )

    def of(self, obj: Object) -> Verdict | None:
        """Return the verdict on an object in its present version, None when it has not been checked yet."""
        ref = reference(obj)
        return self.found.get(ref) if self._checked.get(ref) == _identity(obj) else None

    def about(self, pipeline: Object) -> Mapping[Reference, Verdict]:
        """Return the verdicts that count for a pipeline: all, but not one on an earlier version of itself."""
        if self.of(pipeline) is not None:
            return self.found
        return {ref: verdict for ref, verdict in self.found.items() if ref != reference(pipeline)}

    def pending(self, space: str) -> bool:
        """Whether a pipeline of a namespace, or a task that it names, is still to be checked in its present version.

        A policy need not be: its text gets a revision only when it has been.
        """
        inventory = self._loop.inventory
        return any(
            self.of(obj) is None
            for pipeline in inventory.all("Pipeline", space)
            for obj in (pipeline, *references.existing_tasks(pipeline, inventory))
        )

    def _judge(self, ref: Reference, obj: Object, verdict: Verdict) -> None:
        same = self.found.get(ref) == verdict and self._checked.get(ref) == _identity(obj)
        self.found[ref], self._checked[ref] = verdict, _identity(obj)
        if not same:
            for dependent in dependents.of_verdict(ref, self._loop.inventory):
                self._loop.queue.add(dependent)


def _verdict(
    obj: Object, problems: Sequence[Problem], parameters: dict[str, tuple[str, ...]], composed: dict[str, str]
) -> Verdict:
    unique = list(dict.fromkeys(problems))  # checks of several pools may find the same problem
    return Verdict(
        problem=messages(unique),
        overlaps=bool(unique) and all(problem.code == _OVERLAP for problem in unique),
        parameters=parameters.get(name(obj), ()) if obj["kind"] == "Policy" else (),
        composed=composed.get(name(obj), "") if obj["kind"] == "Policy" else "",
        missing=bool(unique) and all(problem.code == MISSING for problem in unique),
    )


def _identity(obj: Object) -> tuple[str, int]:
    return uid(obj), int(obj["metadata"].get("generation", 1))
