# SPDX-License-Identifier: BSD-2-Clause
"""The operator as a process, for tests with a real API server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from testing.cluster import ROOT, ClusterStartError
from testing.ports import free_port
from testing.waiting import Limit, until

if TYPE_CHECKING:
    from testing.cluster import Cluster

IMAGES = ROOT / "build" / "images"
SHAI = ROOT / "build" / "bin" / "shai"
NAMESPACE = "shai-system"

_READY_SECONDS = 60.0
_REQUEST_SECONDS = 120.0
_STOP_SECONDS = 30.0
_QUIET_SECONDS = 300.0
_BUSY_SECONDS = 15.0
"""The most by which a busy machine makes the time longer in which nothing may be reconciled."""
_LOOKED_AT_AGAIN = ("AnalysisRun", "Benchmark")


class Operator:
    """Runs ``python -m shai_operator run`` for a cluster; a context that stops it."""

    def __init__(
        self,
        cluster: Cluster,
        log: Path,
        *options: str,
        kubeconfig: Path | None = None,
        beside: Operator | None = None,
        has_pools: bool = False,
        program: str = "shai_operator",
    ) -> None:
        """Prepare it; ``beside`` is another replica on this machine, whose port for webhooks it shares.

        Pools that there are go, unless ``has_pools`` says that they are its own. ``program`` is the module that is run.
        """
        self.log = log
        self._program = program
        self._cluster = cluster
        self._kubeconfig = kubeconfig or cluster.kubeconfig
        self._options = options
        self._probes = free_port()
        self.webhooks: int = free_port() if beside is None else beside.webhooks
        """The port at which it answers the API server."""
        self._process: subprocess.Popen[bytes] | None = None
        cluster.try_kubectl("create", "namespace", NAMESPACE)
        if not has_pools:
            # Otherwise, pools that tests of the definitions have left would really be installed on this machine.
            cluster.try_kubectl("delete", "jailpools", "--all", "--wait=false")

    def __enter__(self) -> Self:
        """Start it and wait until it checks what is applied."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and remove its webhooks, because other tests use the API server afterwards."""
        try:
            self.stop()
        finally:
            self._cluster.remove_webhooks()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process, which has been started."""
        assert self._process is not None
        return self._process

    def start(self, *, wait: bool = True) -> None:
        """Start it (again)."""
        command = [
            sys.executable, "-m", self._program, "run",
            "--images", str(IMAGES), "--shai", str(SHAI),
            "--probes", f"127.0.0.1:{self._probes}", "--webhooks", f"127.0.0.1:{self.webhooks}",
            *self._options,
        ]  # fmt: skip
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig), "PYTHONPATH": str(ROOT / "operator")}
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )
        if wait:
            self.await_ready()

    def await_ready(self) -> None:
        """Wait until it checks what is applied; ClusterStartError when it ends before."""
        until(self._is_ready, f"the operator is ready; its log: {self.log}", _READY_SECONDS)

    def stop(self) -> None:
        """Stop it in good order; AssertionError when it takes too long."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                until(self._has_ended, f"the operator ends; its log: {self.log}", _STOP_SECONDS)
            except AssertionError:
                self.kill()
                raise

    def restart(self) -> None:
        """Stop it in good order and start it."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> httpx2.Response:
        """Read its probes or metrics."""
        return httpx2.get(f"http://127.0.0.1:{self._probes}{path}", timeout=_REQUEST_SECONDS)

    def metric(self, name: str, **labels: str) -> float:
        """Sum a metric over all samples with these labels."""
        return _sum(self.samples(name), **labels)

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the samples of a metric, with their labels."""
        return _samples(self.get("/metrics").text, name)

    def most_resident_megabytes(self) -> float:
        """Return the most resident memory that it has had."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the kernel does not say how much memory the operator holds")

    def await_quiet(self, seconds: float = 3.0, *, but: str = "") -> None:
        """Wait until nothing has been reconciled for some seconds, except objects of the kind ``but``.

        On a busy machine it is longer: who gets no processor is not quiet.

        Unfinished runs do not count: the operator looks at each of them every few seconds, and tests of other
        files leave some behind.
        """
        last: dict[str, float] = {}
        limit = Limit(seconds, longest=_BUSY_SECONDS)

        def quiet() -> bool:
            nonlocal last, limit
            page = self.get("/metrics").text
            counted = _samples(page, "shai_operator_reconcile_seconds_count")
            now = {labels["kind"]: value for labels, value in counted}
            for kind in (but, *_LOOKED_AT_AGAIN):
                now.pop(kind, None)
            if now != last or (not but and _sum(_samples(page, "shai_operator_queue_depth"))):
                last, limit = now, Limit(seconds, longest=_BUSY_SECONDS)
            return limit.reached()

        try:
            until(quiet, "the operator has nothing to do", _QUIET_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}; reconciled until then: {last}; its log: {self.log}") from None

    def cpu_seconds(self) -> float:
        """Return its CPU time."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime and stime

    def _has_ended(self) -> bool:
        return self.process.poll() is not None

    def _is_ready(self) -> bool:
        if self._has_ended():
            raise ClusterStartError(
                f"the operator ended with status {self.process.returncode}: {self.log.read_text()[-2000:]}"
            )
        try:
            return self.get("/readyz").status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False


def _samples(page: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Read the samples of one metric only from a page: tests do it many times a second."""
    lines = "".join(f"{line}\n" for line in page.splitlines() if line.startswith(name))
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(lines)
        for sample in family.samples
        if sample.name == name
    ]


def _sum(samples: list[tuple[dict[str, str], float]], **labels: str) -> float:
    return sum(value for found, value in samples if labels.items() <= found.items())
