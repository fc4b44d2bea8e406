# SPDX-License-Identifier: BSD-2-Clause
"""When the pool controller waits for verdicts, and for definitions to settle."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control.pool_controller import PoolController
from shai_operator.control.settled_definitions import settled
from shai_operator.reconcile import releases
from shai_operator.reconcile.objects import FINALIZER, Object, namespace, reference
from shai_operator.reconcile.shares import Share
from tests.reconcile.builders import FOR_SEARCH, OWNED, inventory, resource, space, tenant, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.services import Services
    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.definitions import Verdict
    from shai_operator.reconcile.objects import Reference

TASK = resource("Task", "search", {"command": ["/bin/true"]})


class WentOnError(Exception):
    """The controller asked where to place members."""


class Parts:
    """What the controller asks before it looks at members."""

    def __init__(
        self,
        pool: Object,
        stored: Mapping[str, Release],
        verdicts: Mapping[Reference, Verdict],
        also: tuple[Object, ...] = (),
    ) -> None:
        self.stored = stored
        redefined = {"search": time.monotonic() + 3600}
        self.loop = SimpleNamespace(inventory=inventory(TASK, pipeline("shai"), pool, *also), redefined=redefined)
        self.releases = self.kinds = self
        known = self.loop.inventory
        unchecked = set() if verdicts else {namespace(its) for its in known.all("Pipeline")}
        self.verdicts = SimpleNamespace(found=verdicts, pending=lambda called: called in unchecked)
        self.providers = {"local": self}
        self.surveyors: dict[str, object] = {}
        self.tls = None

    async def named(self, names: frozenset[str]) -> dict[str, Release]:
        return {called: release for called, release in self.stored.items() if called in names}

    async def check(self, *, changing: bool) -> None:
        pass

    def place(self, *_: object) -> None:
        raise WentOnError


def pipeline(mode: str) -> Object:
    return resource("Pipeline", "syse", {"tasks": ["search"], "conduits": [], "mode": mode})


def pool_of(kept: dict[str, Any] | None = None, modes: tuple[str, ...] = ("shai",), **metadata: Any) -> Object:
    """Make a pool whose status has this of the namespace, and a member of it."""
    entry = {"name": "search", "uid": tenant("search").uid, **(kept or {})}
    status = {"namespaces": [entry], "members": [{"name": "default-0", "ordinal": 0, **OWNED}]} if kept else None
    spec = {"provider": "local", "directory": "/srv", "replicas": 1, "allowedModes": list(modes), **FOR_SEARCH}
    return resource("JailPool", "default", spec, status, finalizers=[FINALIZER], **metadata)


def release(mode: str) -> Release:
    pool = pool_of(modes=(mode,))
    made = releases.build(inventory(TASK, pipeline(mode), pool), Share(pool, tenant("search")), {}, {}).release
    assert made is not None
    return made


SHAI, BASELINE = release("shai"), release("baseline")
STATUSES: dict[str, dict[str, Any]] = {
    "a stable release": {"stableRelease": BASELINE.name},
    "a first release": {"candidateRelease": BASELINE.name},
    "canaries": {"stableRelease": SHAI.name, "candidateRelease": BASELINE.name},
    "an earlier candidate": {"stableRelease": SHAI.name, "rollout": {"superseded": BASELINE.name}},
}


async def decides(pool: Object, *, checked: bool, also: tuple[Object, ...] = ()) -> set[str]:
    """Return the namespaces whose definitions the controller takes up now; the pool goes on in any case."""
    stored = {made.name: made for made in (SHAI, BASELINE)}
    verdicts = valid(inventory(TASK, pipeline("shai"))) if checked else {}
    parts = Parts(pool, stored, verdicts, also)
    controller = PoolController(cast("Services", parts))
    with pytest.raises(WentOnError):
        await controller.reconcile(reference(pool))
    known = await settled(cast("Services", parts), pool, stored)
    return {tenant.name for tenant in known.definitions}


@pytest.mark.parametrize("runs", STATUSES)
async def test_nothing_delays_the_removal_of_what_a_pool_forbids(runs: str) -> None:
    for checked in (False, True):
        assert await decides(pool_of(STATUSES[runs]), checked=checked) == {"search"}
    allowed = pool_of(STATUSES[runs], ("shai", "baseline"))
    assert await decides(allowed, checked=False) == set(), "what is allowed waits"


@pytest.mark.parametrize("checked", [False, True])
async def test_a_namespace_whose_definitions_are_not_settled_holds_up_no_other(*, checked: bool) -> None:
    pool = pool_of()
    pool["spec"]["allowedNamespaces"] = {"names": ["search", "other"]}
    theirs = {**pipeline("shai"), "metadata": {**pipeline("shai")["metadata"], "namespace": "other"}}
    assert await decides(pool, checked=checked) == set()
    also = (space("other"), {**TASK, "metadata": {**TASK["metadata"], "namespace": "other"}})
    assert await decides(pool, checked=checked, also=(*also, theirs)) == set(), "this one is not checked"
    assert await decides(pool, checked=checked, also=also) == {"other"}


@pytest.mark.parametrize("names", [[], ["other"]])
async def test_nothing_delays_the_end_of_what_a_namespace_runs_that_may_not_use_the_pool(names: list[str]) -> None:
    pool = pool_of(STATUSES["canaries"])
    pool["spec"]["allowedNamespaces"] = {"names": names}
    for checked in (False, True):
        assert await decides(pool, checked=checked) == set(), "the controller goes on without it"


@pytest.mark.parametrize("checked", [False, True])
async def test_nothing_delays_the_deletion_of_a_pool(*, checked: bool) -> None:
    assert await decides(pool_of(deletionTimestamp="2026-06-01T13:00:00Z"), checked=checked) == set()
