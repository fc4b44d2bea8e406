# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks of a real pipeline, with a real API server: on another host, for which an sshd on loopback stands."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.stacks.monitor import Monitor
from testing.cluster import ROOT, path_of
from testing.operators import NAMESPACE, SHAI, Operator
from testing.waiting import until
from tests.providers import sshd
from tests.providers.support import processes_with
from tests.running.light_syse import PIPELINE, LightSysE
from tests.running.objects import condition, message
from tests.running.small_pools import PATIENCE_SECONDS, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster
    from tests.running.small_pools import Site

LOAD = "shai-load"
ADDRESS = "127.0.0.2"
"""The address of the host. It is not this machine's, which has a lock of its own."""


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("benchmarks") / "log"
    # The tests' interpreter has the package supervisor.
    options = ["--images", str(site.images), "--identity", "test", "--host-python", sys.executable]
    options += ["--load-image", "example.org/shai-operator"]
    running = Operator(devcluster, log, *options)
    devcluster.kubectl("apply", "-k", str(ROOT / "deploy" / "benchmarks"))
    with running:
        yield running


@pytest.fixture(scope="module")
def away(
    devcluster: Cluster, site: Site, new_namespace: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LightSysE]:
    """Yield a pool on a host that is reached by ssh."""
    with sshd.serve(tmp_path_factory.mktemp("sshd"), ADDRESS) as server:
        file = f"--from-file=ssh-privatekey={server.directory / 'user'}"
        devcluster.kubectl("-n", NAMESPACE, "create", "secret", "generic", "away", file)
        key = " ".join(server.key("host.pub").split()[:2])
        hosts = [host("rack", ADDRESS, server.port, "away", key)]
        made = LightSysE(devcluster, new_namespace(), site, "away", provider="linux", hosts=hosts)
        made.await_analyzed()
        yield made
        made.pool.delete()
        made.pool.await_gone()


def jobs(cluster: Cluster) -> list[dict[str, Any]]:
    return list(cluster.request("GET", path_of("batch/v1", "jobs", LOAD)).json()["items"])


def results(away: LightSysE, benchmark: dict[str, Any]) -> dict[str, Any]:
    name = benchmark["status"]["results"]
    found = away.cluster.request("GET", path_of("v1", "configmaps", away.namespace, name)).json()
    return dict(json.loads(found["data"]["results.json"]))


def mode(away: LightSysE) -> str:
    """Return the mode in force, which the member's own monitor says."""
    socket = away.pool.directory / "away-0" / "run" / "monitor.sock"
    return str(Monitor(SHAI, socket).pipeline(PIPELINE)["mode"])


def test_a_member_on_another_host_is_measured_over_the_network(away: LightSysE) -> None:
    away.measure("cost", thresholds=["failures>1000000", "queries_per_second>0"])
    done = away.await_measured("cost")
    assert condition(done, "WithinThresholds") == ("False", "Exceeded")
    assert "queries_per_second>0" in message(done, "WithinThresholds")
    found = results(away, done)
    assert "the load came over the network" in found["notes"][0]
    for entry in found["throughput"]:
        for series in ("baseline", "shai", "control"):
            assert entry[series]["cpuMicrosPerQuery"]["estimate"] > 0, "the monitors' counts of CPU time arrive"
    assert {sample["mode"] for sample in found["samples"]} == {"baseline", "shai", "control"}
    programs = {"supervisor", "search", "support", "interests", "worker", "monitor"}
    assert set(found["samples"][0]["process_cpu_seconds"]) == programs
    assert mode(away) == "shai", "it is what it was before"
    assert processes_with("away-0-b") == processes_with("away-0-c") == []
    assert sorted(path.name for path in away.pool.directory.glob("away-0*")) == ["away-0"]


def test_workers_of_a_job_share_the_load(away: LightSysE, tmp_path: Path) -> None:
    """The embedded cluster runs no pods: the test starts what the API server has accepted, as a kubelet does."""
    away.measure("jobs", workers={"count": 2, "as": "Job"}, scenario="ramp", sliceSeconds=2)

    def begun() -> dict[str, Any] | None:
        found = jobs(away.cluster)
        return found[0] if found and not found[0]["spec"]["suspend"] else None

    job = until(begun, "the Job begins", 2 * PATIENCE_SECONDS)
    name, spec = job["metadata"]["name"], job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    policy = away.cluster.request("GET", path_of("networking.k8s.io/v1", "networkpolicies", LOAD, name)).json()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    (container,) = spec["template"]["spec"]["containers"]
    (secret,) = (one["secret"] for one in spec["template"]["spec"]["volumes"] if "secret" in one)
    held = away.cluster.request("GET", path_of("v1", "secrets", LOAD, secret["secretName"])).json()
    for file, content in held["data"].items():
        (tmp_path / file).write_bytes(base64.b64decode(content))
    (mount,) = (one["mountPath"] for one in container["volumeMounts"] if one["name"] == "tls")
    words = [str(tmp_path) if word == mount else word for word in container["args"]]
    program = [sys.executable, *container["command"][1:]]
    with subprocess.Popen([*program, *words], cwd=ROOT) as one, subprocess.Popen([*program, *words], cwd=ROOT) as two:
        done = away.await_measured("jobs")
        assert (one.wait(), two.wait()) == (0, 0)
    found = results(away, done)
    assert (found["scenario"], {row["sessionLength"] for row in found["rows"]}) == ("ramp", {8})
    assert {sample["failures"] for sample in found["samples"]} == {0}
    until(lambda: jobs(away.cluster) == [], "the Job goes")
    owned = [path_of("v1", "secrets", LOAD, name), path_of("networking.k8s.io/v1", "networkpolicies", LOAD, name)]
    for path in owned:
        until(lambda path=path: away.cluster.request("GET", path).status_code == 404, f"{path} goes with it")


def test_workers_that_a_killed_operator_has_left_go(away: LightSysE, operator: Operator) -> None:
    away.measure("left", workers={"count": 1, "as": "Job"}, scenario="ramp", sliceSeconds=2)
    until(lambda: jobs(away.cluster), "the Job is made", 2 * PATIENCE_SECONDS)
    operator.kill()
    away.cluster.kubectl("-n", away.namespace, "delete", "benchmark", "left")
    assert len(jobs(away.cluster)) == 1
    operator.start()
    until(lambda: jobs(away.cluster) == [], "the Job goes")
