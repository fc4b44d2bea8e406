# SPDX-License-Identifier: BSD-2-Clause
"""Controllers of the objects that users define: policies, tasks, fact sources, principals, pipelines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.reconcile import analyses, definitions, policies, references, task_run_objects
from shai_operator.reconcile.objects import deleting, namespace

if TYPE_CHECKING:
    from shai_operator.control.executor import Executor
    from shai_operator.control.loop import Loop
    from shai_operator.control.verdicts import Verdicts
    from shai_operator.reconcile.objects import Object, Reference
    from shai_operator.reconcile.seals import Seal


class DefinitionController:
    """The controller of these kinds."""

    def __init__(self, loop: Loop, verdicts: Verdicts, executor: Executor, seal: Seal) -> None:
        self._loop = loop
        self._verdicts = verdicts
        self._executor = executor
        self._seal = seal

    async def reconcile(self, ref: Reference) -> float | None:
        """Reconcile one object; do nothing when it does not exist any more."""
        obj = self._loop.inventory.get(ref)
        if obj is None:
            return None
        now = datetime.now(UTC)
        inventory = self._loop.inventory
        match ref.kind:
            case "Policy":
                verdict = self._verdicts.of(obj)
                plan = policies.reconcile(
                    obj,
                    inventory,
                    problem=None if verdict is None else verdict.problem,
                    parameters=() if verdict is None else verdict.parameters,
                    composed="" if verdict is None else verdict.composed,
                    missing=verdict is not None and verdict.missing,
                    used=self._used(obj),
                    seal=self._seal,
                    now=now,
                )
            case "Task":
                plan = definitions.task(obj, self._verdicts.of(obj), inventory, now)
            case "FactSource":
                plan = definitions.fact_source(obj, self._verdicts.of(obj), inventory, now)
            case "Pipeline":
                plan = definitions.pipeline(obj, self._verdicts.about(obj), inventory, now)
                plan.add(*analyses.of_pipeline(obj, inventory, now).actions)
                plan.add(*task_run_objects.history(obj, inventory).actions)
            case "Principal":
                plan = definitions.principal(obj, now)
            case _:
                raise ValueError(f"{ref}: not a kind that users define")
        return await self._executor.execute(plan)

    def _used(self, policy: Object) -> bool:
        name = policy["metadata"]["name"]
        inventory = self._loop.inventory
        return any(
            references.names_policy(pipeline, name, inventory) and not deleting(pipeline)
            for pipeline in inventory.all("Pipeline", namespace(policy))
        )
