# SPDX-License-Identifier: BSD-2-Clause
"""Workers as pods of a Job, with a stand-in for the API server; tests/running has a real one."""

from __future__ import annotations

import base64
import socket
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from loadgen.driving import joining
from shai_operator.control.load_jobs import LoadJobs
from shai_operator.control.measuring import MeasuringError
from shai_operator.control.worker_jobs import WorkerJobs
from shai_operator.providers import authority
from tests.reconcile.builders import SEAL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Reference


class Stored:
    """Keeps what is created, and says what is done with it."""

    def __init__(self, failing: str = "") -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.done: list[str] = []
        self._failing = failing

    async def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        kind = body["kind"]
        if kind == self._failing:
            raise ConnectionError(kind)
        self.done.append(f"create {kind}")
        made = {**body, "metadata": {**body["metadata"], "uid": f"uid-{kind}"}}
        self.objects[kind] = made
        return made

    async def merge(self, ref: Reference, body: Mapping[str, Any]) -> None:
        self.done.append(f"merge {ref.kind} {body}")

    async def delete(self, ref: Reference, uid: str) -> None:
        self.done.append(f"delete {ref.kind} {uid}")


def jobs(stored: Stored, image: str = "example.org/operator") -> LoadJobs:
    return LoadJobs(WorkerJobs(cast("Cluster", stored), SEAL), image, "127.0.0.1")


async def test_the_pods_begin_when_all_that_confines_them_is_there(tmp_path: Path) -> None:
    stored = Stored()
    async with jobs(stored).workers(3, "192.0.2.7", tmp_path) as found:
        assert stored.objects["Job"]["spec"]["suspend"] is True
        assert stored.done == [
            "create Job", "create NetworkPolicy", "create Secret", "merge Job {'spec': {'suspend': False}}",
        ]  # fmt: skip
        address = socket.socket(fileno=found.listener).detach()
        assert address == found.listener
        egress = stored.objects["NetworkPolicy"]["spec"]["egress"]
        assert [rule["to"][0]["ipBlock"]["cidr"] for rule in egress] == ["127.0.0.1/32", "192.0.2.7/32"]
        port = egress[0]["ports"][0]["port"]
        (container,) = stored.objects["Job"]["spec"]["template"]["spec"]["containers"]
        assert container["args"][1] == f"127.0.0.1:{port}"
        for kind in ("NetworkPolicy", "Secret"):
            (owner,) = stored.objects[kind]["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Job", "uid-Job"), "it goes with the Job"
    assert stored.done[-1] == "delete Job uid-Job"


@pytest.mark.parametrize("failing", ["NetworkPolicy", "Secret"])
async def test_a_job_that_cannot_begin_is_deleted(tmp_path: Path, failing: str) -> None:
    stored = Stored(failing)
    with pytest.raises(ConnectionError):
        async with jobs(stored).workers(1, "192.0.2.7", tmp_path):
            pytest.fail("it began")
    assert stored.done[-1] == "delete Job uid-Job"
    assert not any(line.startswith("merge") for line in stored.done)


async def test_an_operator_without_an_image_makes_none(tmp_path: Path) -> None:
    stored = Stored()
    with pytest.raises(MeasuringError, match="--load-image"):
        async with jobs(stored, image="").workers(1, "192.0.2.7", tmp_path):
            pytest.fail("it began")
    assert stored.done == []


async def test_workers_have_no_rights_on_monitors(tmp_path: Path) -> None:
    """Monitors accept certificates of the operator's authority; those of workers are of another one."""
    root = x509.load_pem_x509_certificate(authority.create().certificate.encode())
    stored = Stored()
    async with jobs(stored).workers(1, "192.0.2.7", tmp_path):
        data = {file: base64.b64decode(text) for file, text in stored.objects["Secret"]["data"].items()}
    assert set(data) == {joining.AUTHORITY, joining.WORKER}, "the key of the measurement itself is not among them"
    worker = x509.load_pem_x509_certificate(data[joining.WORKER])
    own = x509.load_pem_x509_certificate(data[joining.AUTHORITY])
    worker.verify_directly_issued_by(own)
    with pytest.raises((ValueError, InvalidSignature)):
        worker.verify_directly_issued_by(root)
    pod = stored.objects["Job"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
