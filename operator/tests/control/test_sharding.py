# SPDX-License-Identifier: BSD-2-Clause
"""Analyses in shards, with stand-ins for the API server and for the program; tests/running has the real ones."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from shai_operator.cluster.client import ClusterError
from shai_operator.control.settings import Settings
from shai_operator.control.sharding import ATTEMPTS, Sharding, ShardingError, Subject
from shai_operator.control.worker_jobs import WorkerJobs
from shai_operator.monitors.errors import MonitorError
from shai_operator.providers import authority
from shai_operator.reconcile.runs import Shards
from testing.waiting import until_async
from tests.reconcile.builders import SEAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Object, Reference

ROOT = authority.create()
ANALYSIS = {"durationMicroseconds": 1, "conduits": 1, "classes": 1, "instances": 7}
TWO = Shards(2, 500, 256, 60)
LISTENING = {"listening": "127.0.0.1:4567"}
DONE = {"done": 1, "of": 2}
RESULT = {"analysis": ANALYSIS}


def problem(status: int, title: str = "import analysis") -> dict[str, Any]:
    return {"problem": {"title": title, "status": status, "detail": "of other facts"}}


class Stored:
    """Keeps what is created; Jobs get a status when they are looked at."""

    def __init__(self, *statuses: dict[str, Any] | Exception) -> None:
        self.made: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self._statuses = list(statuses)

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        made = {**body, "metadata": {**body["metadata"], "uid": f"uid-{len(self.made)}"}}
        self.made.append(made)
        return made

    async def merge(self, ref: Reference, body: Mapping[str, Any]) -> None: ...

    async def delete(self, _: Reference, uid: str) -> None:
        self.deleted.append(uid)

    async def get(self, _: Reference) -> Object | None:
        said = self._statuses.pop(0) if len(self._statuses) > 1 else (self._statuses or [{}])[0]
        if isinstance(said, Exception):
            raise said
        return {**self.of_kind("Job")[-1], "status": said}

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.made if one["kind"] == kind]


class World:
    """An operator whose program says something else at each start."""

    def __init__(self, place: Path, stored: Stored, *runs: Sequence[Any], image: str = "example.org/o") -> None:
        self.stored = stored
        self.place = place
        self.waits: list[str] = []
        self.progress: list[tuple[int, int]] = []
        program = place / "shai"
        program.write_text(
            f"#!/bin/sh\ncd {place}\nnumber=$(ls started* 2>/dev/null | wc -l)\n"
            'echo "$$" "$@" > started$number\nexec sh run$number\n'
        )
        program.chmod(0o755)
        for number, said in enumerate(runs):
            lines = [one if isinstance(one, str) else f"echo '{json.dumps(one)}'" for one in said]
            (place / f"run{number}").write_text("\n".join([*lines, ""]))
        runtime = place / "runtime"
        runtime.mkdir()
        settings = Settings(
            namespace="shai-system",
            identity="test",
            shai=program,
            images=place,
            runtime=runtime,
            shared=place,
            probes=("", 0),
            webhooks=("", 0),
            webhook_host="",
            shard_image=image,
        )
        cluster = cast("Cluster", stored)
        self.sharding = Sharding(cluster, WorkerJobs(cluster, SEAL), settings, ROOT)

    async def analyze(self, space: str = "search") -> dict[str, Any]:
        def tell(found: Mapping[str, Any]) -> None:
            self.progress.append((found["done"], found["total"]))

        subject = Subject(space, "syse", "192.0.2.1:8443", f"AnalysisRun {space}/one")
        return await self.sharding.analyze(subject, TWO, tell, self.waits.append)

    def started(self) -> int:
        return len(list(self.place.glob("started*")))

    def assert_nothing_left(self) -> None:
        assert sorted(self.stored.deleted) == [job["metadata"]["uid"] for job in self.stored.of_kind("Job")]
        assert list((self.place / "runtime").iterdir()) == [], "keys and work are removed"
        for file in self.place.glob("started*"):
            with pytest.raises(ProcessLookupError):
                os.kill(int(file.read_text().split()[0]), 0)


WAITS = "exec sleep 600"
"""Goes on until it is ended."""


async def test_the_process_s_result_is_the_member_s(tmp_path: Path) -> None:
    world = World(tmp_path, Stored(), [LISTENING, DONE, RESULT])
    assert (await world.analyze())["instances"] == 7
    assert world.progress == [(0, 2), (1, 2)]
    world.assert_nothing_left()
    words = (tmp_path / "started0").read_text().split()
    assert words[words.index("--server") + 1] == "192.0.2.1:8443"
    assert words[words.index("--shards") + 1] == "2"


async def test_pods_have_a_certificate_of_this_run_alone_and_nothing_else(tmp_path: Path) -> None:
    """Monitors accept certificates of the operator's authority; those of pods are of another one."""
    world = World(tmp_path, Stored(), [LISTENING, RESULT], [LISTENING, RESULT])
    await world.analyze()
    await world.analyze()
    secrets = [
        {file: base64.b64decode(text) for file, text in one["data"].items()} for one in world.stored.of_kind("Secret")
    ]
    assert [set(data) for data in secrets] == [{"authority.pem", "own.pem"}] * 2
    own = [x509.load_pem_x509_certificate(data["own.pem"]) for data in secrets]
    root, other = (
        x509.load_pem_x509_certificate(text) for text in (ROOT.certificate.encode(), secrets[1]["authority.pem"])
    )
    own[1].verify_directly_issued_by(other)
    for authority_of_others in (root, other):
        with pytest.raises((ValueError, InvalidSignature)):
            own[0].verify_directly_issued_by(authority_of_others)
    (job, _) = world.stored.of_kind("Job")
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert job["metadata"]["namespace"] == "shai-analysis"


@pytest.mark.parametrize("kind", ["Failed", "FailureTarget"])
async def test_a_job_that_fails_ends_the_analysis(tmp_path: Path, kind: str) -> None:
    failed = {"conditions": [{"type": kind, "status": "True", "message": "of rack-2"}]}
    world = World(tmp_path, Stored(ClusterError("away"), {"active": 1}, failed), [LISTENING, WAITS])
    with pytest.raises(ShardingError, match="the Job of its shards failed; the operator's log has more") as raised:
        await world.analyze()
    assert "rack-2" not in str(raised.value)
    assert "1 of 2 pods of its Job have begun" in world.waits
    world.assert_nothing_left()


async def test_facts_that_change_are_no_failure_at_first(tmp_path: Path) -> None:
    stale = [LISTENING, problem(409)]
    world = World(tmp_path, Stored(), stale, stale, [LISTENING, RESULT])
    assert (await world.analyze())["instances"] == 7
    assert world.started() == len(world.stored.of_kind("Job")) == 3
    world.assert_nothing_left()


@pytest.mark.parametrize(
    ("said", "status", "times"),
    [([LISTENING, problem(409)], 409, ATTEMPTS), ([problem(503)], 503, 1), ([LISTENING, problem(422)], 422, 1)],
    ids=["stale", "away", "wrong"],
)
async def test_what_the_monitor_refuses_is_told(tmp_path: Path, said: list[Any], status: int, times: int) -> None:
    world = World(tmp_path, Stored(), *[said] * ATTEMPTS)
    with pytest.raises(MonitorError, match="import analysis: of other facts") as raised:
        await world.analyze()
    assert raised.value.status == status
    assert world.started() == times
    world.assert_nothing_left()


@pytest.mark.parametrize("said", [[], [LISTENING]], ids=["before it listens", "later"])
async def test_a_process_that_ends_without_a_result_has_failed(tmp_path: Path, said: list[Any]) -> None:
    world = World(tmp_path, Stored(), [*said, "echo 'disk of rack-2 is full' >&2; exit 1"])
    with pytest.raises(ShardingError) as raised:
        await world.analyze()
    assert "rack-2" not in str(raised.value)
    world.assert_nothing_left()


async def test_an_analysis_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, Stored(), [LISTENING, WAITS])
    running = asyncio.create_task(world.analyze())
    await until_async(lambda: bool(world.stored.of_kind("Secret")))
    running.cancel()
    await asyncio.wait([running])
    world.assert_nothing_left()


async def test_a_namespace_with_many_runs_keeps_no_other_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, Stored(), [LISTENING, WAITS], [LISTENING, RESULT])
    many = [asyncio.create_task(world.analyze("greedy")) for _ in range(5)]
    await until_async(lambda: world.started() == 1)
    assert (await world.analyze("other"))["instances"] == 7
    assert world.started() == 2, "the greedy one has one at a time"
    assert "it waits for other analyses in shards to end" in world.waits
    for one in many:
        one.cancel()
    await asyncio.wait(many)
    world.assert_nothing_left()


async def test_an_operator_without_an_image_makes_no_job(tmp_path: Path) -> None:
    world = World(tmp_path, Stored(), image="")
    with pytest.raises(ShardingError, match="--shard-image"):
        await world.analyze()
    assert world.stored.made == []
    assert world.started() == 0
