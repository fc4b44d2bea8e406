# SPDX-License-Identifier: BSD-2-Clause
"""When the pool controller waits for verdicts, and for definitions to settle."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control.pool_controller import PoolController
from shai_operator.reconcile import releases
from shai_operator.reconcile.objects import FINALIZER, Object, reference
from tests.reconcile.builders import FOR_SEARCH, inventory, resource, valid

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

    def __init__(self, pool: Object, stored: Mapping[str, Release], verdicts: Mapping[Reference, Verdict]) -> None:
        self.stored = stored
        redefined = {"search": time.monotonic() + 3600}
        self.loop = SimpleNamespace(inventory=inventory(TASK, pipeline("shai"), pool), redefined=redefined)
        self.releases = self.kinds = self
        self.verdicts = SimpleNamespace(found=verdicts)
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


def pool_of(status: dict[str, Any] | None = None, modes: tuple[str, ...] = ("shai",), **metadata: Any) -> Object:
    spec = {"provider": "local", "directory": "/srv", "replicas": 1, "allowedModes": list(modes), **FOR_SEARCH}
    return resource("JailPool", "default", spec, status, finalizers=[FINALIZER], **metadata)


def release(mode: str) -> Release:
    pool = pool_of(modes=(mode,))
    made = releases.build(inventory(TASK, pipeline(mode), pool), pool, {}, {}).release
    assert made is not None
    return made


SHAI, BASELINE = release("shai"), release("baseline")
STATUSES: dict[str, dict[str, Any]] = {
    "a stable release": {"stableRelease": BASELINE.name},
    "a first release": {"candidateRelease": BASELINE.name},
    "canaries": {"stableRelease": SHAI.name, "candidateRelease": BASELINE.name},
    "an earlier candidate": {"stableRelease": SHAI.name, "rollout": {"superseded": BASELINE.name}},
}


async def goes_on(pool: Object, *, checked: bool, of: str = "search") -> bool:
    stored = {made.name: replace(made, namespace=of) for made in (SHAI, BASELINE)}
    verdicts = valid(inventory(TASK, pipeline("shai"))) if checked else {}
    controller = PoolController(cast("Services", Parts(pool, stored, verdicts)))
    try:
        await controller.reconcile(reference(pool))
    except WentOnError:
        return True
    return False


@pytest.mark.parametrize("runs", STATUSES)
async def test_nothing_delays_the_removal_of_what_a_pool_forbids(runs: str) -> None:
    for checked in (False, True):
        assert await goes_on(pool_of(STATUSES[runs]), checked=checked)
    assert not await goes_on(pool_of(STATUSES[runs], ("shai", "baseline")), checked=False), "what is allowed waits"


@pytest.mark.parametrize("runs", ["a stable release", "a first release", "canaries"])
@pytest.mark.parametrize("names", [[], ["search"]])
async def test_nothing_delays_the_end_of_what_another_namespace_runs(runs: str, names: list[str]) -> None:
    pool = pool_of(STATUSES[runs], ("shai", "baseline"))
    pool["spec"]["allowedNamespaces"] = {"names": names}
    for checked in (False, True):
        assert await goes_on(pool, checked=checked, of="former")


@pytest.mark.parametrize("checked", [False, True])
async def test_nothing_delays_the_deletion_of_a_pool(*, checked: bool) -> None:
    assert await goes_on(pool_of(deletionTimestamp="2026-06-01T13:00:00Z"), checked=checked)
    assert not await goes_on(pool_of(), checked=checked), "another one waits"
