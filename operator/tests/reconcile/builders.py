# SPDX-License-Identifier: BSD-2-Clause
"""Objects as the API server stores them, for tests of the pure layer, and the statuses that plans write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from shai_operator.reconcile import definitions, policies
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.definitions import Verdict
from shai_operator.reconcile.objects import CLUSTER_SCOPED, Inventory, Object, Reference, name, namespace, reference
from shai_operator.reconcile.seals import Seal
from shai_operator.reconcile.tenants import Tenant

if TYPE_CHECKING:
    from shai_operator.reconcile.actions import Plan
    from shai_operator.reconcile.conditions import Condition


class Decision(Protocol):
    """A decision of `runs` or `benchmarks`."""

    @property
    def plan(self) -> Plan: ...


CREATED = "2026-06-01T12:00:00Z"
SEAL = Seal(b"the operator's secret")
FOR_SEARCH = {"allowedNamespaces": {"names": ["search"]}}
"""Spec of a pool that serves the namespace of `resource`."""


def resource(
    kind: str, called: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any
) -> Object:
    """Make an object in namespace search; ``metadata`` is added to the usual metadata."""
    known = {"name": called, "uid": f"uid-{called}", "generation": 1, "creationTimestamp": CREATED}
    if kind not in CLUSTER_SCOPED:
        known["namespace"] = "search"
    return {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": kind,
        "metadata": {**known, **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def genuine(revision: Object) -> bool:
    """Whether a revision has this seal."""
    return policies.genuine(revision, SEAL)


def revision(policy: Object, number: int = 1) -> dict[str, Any]:
    """Make the revision of a policy's content, as the operator does."""
    made = policies.revision(policy, number, SEAL)
    return {**made, "metadata": {**made["metadata"], "uid": f"uid of {made['metadata']['name']}"}}


def condition(kind: str, status: str, reason: str = "R", message: str = "") -> dict[str, Any]:
    """Make a condition of a status."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED}


def tenant(called: str, number: int = 1) -> Tenant:
    """Return the tenant that the Namespace `space` is; one that gets its name later has another number."""
    return Tenant(called, f"uid-{called}-{number}")


def space(called: str, number: int = 1, **labels: str) -> Object:
    """Make a Namespace."""
    made = tenant(called, number)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": called, "uid": made.uid, "labels": labels}}


OWNED = {"namespace": "search", "namespaceUID": tenant("search").uid}
"""Fields of the row of a member that belongs to the namespace of `resource`."""


def inventory(*objects: Object) -> Inventory:
    """Make an inventory of these objects and of their namespaces."""
    known = Inventory(genuine)
    for called in sorted({"search", *(namespace(obj) for obj in objects)} - {""}):
        known.put(space(called))
    for obj in objects:
        known.put(obj)
    return known


def valid(known: Inventory) -> dict[Reference, Verdict]:
    """Return verdicts of a parser that finds no problem."""
    kinds = ("Pipeline", "Task", "Policy")
    return {reference(obj): Verdict() for kind in kinds for obj in known.all(kind)}


def refused(
    pool: Object, known: Inventory, called: str = "search", /, **problems: Verdict
) -> dict[Reference, Condition]:
    """Return a namespace's pipelines of a pool that are not accepted; ``problems`` are verdicts on them, by name."""
    pipelines = {reference(found): name(found) for found in known.all("Pipeline")}
    verdicts = valid(known) | {pipeline: problems[its] for pipeline, its in pipelines.items() if its in problems}
    found = definitions.refused(name(pool), called, verdicts, known)
    assert found is not None
    return found


def written(plan: Plan) -> dict[str, Any]:
    """Return the one status that a plan writes."""
    (action,) = [action for action in plan.actions if isinstance(action, SetStatus)]
    return dict(action.status)


def only_condition(plan: Plan) -> dict[str, Any]:
    """Return the one condition of the one status that a plan writes."""
    (found,) = written(plan)["conditions"]
    return dict(found)


def status_of(decision: Decision) -> dict[str, Any]:
    """Return the one status that a decision writes."""
    return written(decision.plan)


def succeeded(decision: Decision) -> tuple[str, str]:
    """Return status and reason of the one condition that a decision writes."""
    found = only_condition(decision.plan)
    return found["status"], found["reason"]


def message(decision: Decision) -> str:
    """Return the message of the one condition that a decision writes."""
    return str(only_condition(decision.plan)["message"])
