# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that an operator has left, with a stand-in for the API server; tests/running has the real one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.cluster.client import ClusterError
from shai_operator.control.worker_jobs import WorkerJobs, Workers
from shai_operator.reconcile.seals import Seal
from testing.waiting import until_async
from tests.reconcile.builders import SEAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Reference

SPACE = "shai-analysis"
WORKERS = Workers(
    kind="shai-analysis",
    namespace=SPACE,
    label="shai.dev/analysis",
    count=1,
    container={"name": "shard"},
    mounted="/run/shai-analysis",
    files={},
    scratch="1Mi",
    reached=[],
    seconds=60,
    failing={},
)


class Stored:
    """Keeps Jobs as an API server does, which adds to their spec."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.away = False
        self.lists = 0

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        called = body["metadata"]["name"]
        made = {**body, "metadata": {**body["metadata"], "uid": f"uid-{called}"}}
        if body["kind"] == "Job":
            self.jobs[called] = {**made, "spec": {**body["spec"], "manualSelector": False}}
        return made

    async def merge(self, ref: Reference, body: Mapping[str, Any]) -> None:
        self.jobs[ref.name]["spec"] |= body["spec"]

    async def delete(self, ref: Reference, uid: str) -> None:
        if self.away:
            raise ClusterError("away")
        if self.jobs.get(ref.name, {"metadata": {"uid": ""}})["metadata"]["uid"] == uid:
            del self.jobs[ref.name]

    async def list(self, kind: str, namespace: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        self.lists += 1
        if self.away:
            raise ClusterError("away")
        assert (kind, namespace) == ("Job", SPACE)
        return [job for job in self.jobs.values() if labels.items() <= job["metadata"]["labels"].items()]


def worker_jobs(stored: Stored, seal: Seal = SEAL) -> WorkerJobs:
    return WorkerJobs(cast("Cluster", stored), seal)


async def left(stored: Stored, seal: Seal = SEAL) -> None:
    """Make a Job, and end without deleting it, as an operator does that does not lead any more."""
    with pytest.raises(ClusterError):
        async with worker_jobs(stored, seal).running(WORKERS):
            stored.away = True
    stored.away = False


async def test_jobs_that_another_process_has_left_are_deleted() -> None:
    stored = Stored()
    await left(stored)
    assert len(stored.jobs) == 1
    await worker_jobs(stored).sweep(SPACE)
    assert stored.jobs == {}


async def test_a_job_that_could_not_be_deleted_goes_later() -> None:
    stored = Stored()
    jobs = worker_jobs(stored)
    with pytest.raises(ClusterError):
        async with jobs.running(WORKERS):
            stored.away = True
    stored.away = False
    await jobs.sweep(SPACE)
    assert stored.jobs == {}


async def test_jobs_that_run_here_stay() -> None:
    stored = Stored()
    jobs = worker_jobs(stored)
    async with jobs.running(WORKERS):
        await jobs.sweep(SPACE)
        assert len(stored.jobs) == 1


@pytest.mark.parametrize("change", ["no seal", "another's seal", "another name", "another namespace"])
async def test_what_the_operator_did_not_make_stays(change: str) -> None:
    stored = Stored()
    await left(stored, Seal(b"another secret") if change == "another's seal" else SEAL)
    ((called, job),) = stored.jobs.items()
    if change == "no seal":
        del job["metadata"]["annotations"]
    elif change == "another name":  # the seal was copied
        job["metadata"]["name"] = "own"
        stored.jobs = {"own": job}
    elif change == "another namespace":
        job["metadata"]["namespace"] = "search"
    before = dict(stored.jobs)
    await worker_jobs(stored).sweep(SPACE)
    assert stored.jobs == before, called


async def test_an_api_server_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shai_operator.control.worker_jobs._SWEEP_SECONDS", 0.0)
    stored = Stored()
    await left(stored)
    stored.away = True
    sweeping = asyncio.create_task(worker_jobs(stored).keep_swept([SPACE]))
    await until_async(lambda: stored.lists > 2)
    assert len(caplog.records) == 1, "the same is said once"
    stored.away = False
    await until_async(lambda: stored.jobs == {})
    sweeping.cancel()
    await asyncio.wait([sweeping])
