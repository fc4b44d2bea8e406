# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with which object: the definitions of a namespace, checked together.

Applying five hundred policies causes some few checks, not five hundred: whatever has changed by
the time of a check is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.monitors.validator import messages
from shai_operator.reconcile import dependents, references
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import Reference, created, name, reference, uid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.control.loop import Loop
    from shai_operator.monitors.validator import Problem, Validator
    from shai_operator.reconcile.objects import Object

_KINDS = ("Policy", "FactSource", "Task")
_OVERLAP = "overlap"


class Verdicts:
    """The controller of namespaces: keeps `found` for the others."""

    def __init__(self, loop: Loop, validator: Validator) -> None:
        self.found: dict[Reference, Verdict] = {}
        """By object; what is not here has not been checked yet."""
        self._loop = loop
        self._validator = validator
        self._checked: dict[Reference, tuple[str, int]] = {}

    async def reconcile(self, ref: Reference) -> float | None:
        """Check a namespace's definitions, and have those looked at whose verdict is another."""
        inventory = self._loop.inventory
        shared = [one for kind in _KINDS for one in inventory.all(kind, ref.name)]
        pipelines = sorted(inventory.all("Pipeline", ref.name), key=lambda one: (created(one), uid(one)))
        present = {reference(thing): thing for thing in [*shared, *pipelines]}
        problems: dict[Reference, list[Problem]] = {}
        parameters: dict[str, tuple[str, ...]] = {}
        # Pipelines of two pools run on two monitors, and may well have the same paths.
        for pool in sorted({references.pool(one) for one in pipelines}) or [""]:
            own = [one for one in pipelines if references.pool(one) == pool]
            answer = await self._validator.check([*shared, *inventory.all("Principal"), *own], alone=True)
            for problem in answer.problems:
                problems.setdefault(problem.object, []).append(problem)
            parameters.update(answer.parameters)
        for gone in [one for one in self.found if one.namespace == ref.name and one not in present]:
            del self.found[gone], self._checked[gone]
        for one, thing in present.items():
            self._judge(one, thing, _verdict(thing, problems.get(one, ()), parameters))
        return None

    def of(self, thing: Object) -> Verdict | None:
        """Return the verdict on an object as it stands, None when that is not yet checked."""
        ref = reference(thing)
        return self.found.get(ref) if self._checked.get(ref) == _identity(thing) else None

    def _judge(self, ref: Reference, thing: Object, verdict: Verdict) -> None:
        same = self.found.get(ref) == verdict and self._checked.get(ref) == _identity(thing)
        self.found[ref], self._checked[ref] = verdict, _identity(thing)
        if not same:
            for one in dependents.of_verdict(ref, self._loop.inventory):
                self._loop.queue.add(one)


def _verdict(thing: Object, problems: Sequence[Problem], parameters: dict[str, tuple[str, ...]]) -> Verdict:
    unique = list(dict.fromkeys(problems))  # what several pools' checks have found is one problem
    return Verdict(
        problem=messages(unique),
        overlaps=bool(unique) and all(one.code == _OVERLAP for one in unique),
        parameters=parameters.get(name(thing), ()) if thing["kind"] == "Policy" else (),
    )


def _identity(thing: Object) -> tuple[str, int]:
    return uid(thing), int(thing["metadata"].get("generation", 1))
