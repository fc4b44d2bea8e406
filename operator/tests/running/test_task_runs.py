# SPDX-License-Identifier: BSD-2-Clause
"""TaskRuns on a real member: success, failure, retries, cancel, time-out, queue, crashes, denials, history."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import path_of
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import API, OPEN, RUNTIMES, apply, await_condition, condition, policy, read, resource, task
from tests.running.small_pools import PATIENCE_SECONDS, Site, SmallPool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testing.cluster import Cluster

NAMESPACE = "task-runs"
CLOSED = 'policy closed {\n  read   :- sKeyIs("nobody").\n  update :- sKeyIs("nobody").\n}\n'


class Runs(SmallPool):
    """A member with a task that does what a file says: ok, fail, or go on while it is slow."""

    def __init__(self, cluster: Cluster, site: Site) -> None:
        super().__init__(cluster, NAMESPACE, site, "runs")
        site.base.chmod(0o755)
        self.switch = site.base / "switch" / "word"
        self.switch.parent.mkdir()
        self.say("ok")

    def say(self, word: str) -> None:
        new = self.switch.with_suffix(".new")
        new.write_text(f"{word}\n")
        new.rename(self.switch)

    def set(self, **spec: Any) -> None:
        switched = {"name": "switched", "paths": [*RUNTIMES[0]["paths"], str(self.switch.parent)]}
        super().set(**{"runtimes": [*RUNTIMES, switched], **spec})

    def define(self, remark: str = "", *, also: tuple[str, ...] = ()) -> None:
        del remark
        look = f"read word < {self.switch}"
        program = f"{look}; while [ $word = slow ]; do sleep 0.2; {look}; done; [ $word = ok ] || exit 3"
        apply(
            self.cluster,
            self.namespace,
            policy("open", OPEN.format(name="open")),
            policy("closed", CLOSED),
            task("once", "open", command=["/bin/sh", "-c", program], runtimeName="switched"),
            task("peeker", "open", reads=["secrets"]),
            resource(
                "Pipeline",
                "p",
                pool=self.name,
                tasks=["once", *also],
                conduits=[conduit("files", "/a/**", "open"), conduit("secrets", "/b/**", "closed")],
                rollout={"steps": [{"members": 1, "pauseSeconds": 1}], "limits": {"minimumSessions": 0}},
                taskRuns={"successfulRunsHistoryLimit": 1},
            ),
        )

    def start(self, name: str, **spec: Any) -> None:
        apply(self.cluster, NAMESPACE, resource("TaskRun", name, pipeline="p", task="once", **spec))

    def awaited(self, name: str, status: str, reason: str) -> dict[str, Any]:
        found = await_condition(
            self.cluster, "TaskRun", NAMESPACE, name, "Succeeded", (status, reason), seconds=PATIENCE_SECONDS
        )
        written: dict[str, Any] = found["status"]
        return written

    def cancel(self, name: str) -> None:
        self.cluster.kubectl(
            "-n", NAMESPACE, "patch", "taskrun", name, "--type=merge", "-p", '{"spec": {"cancel": true}}'
        )

    def brought_up(self) -> list[dict[str, Any]]:
        """Return the runs that the operator made, oldest first."""
        items = self.cluster.request("GET", path_of(API, "taskruns", NAMESPACE)).json()["items"]
        own = [item for item in items if item["spec"]["trigger"] == "BringUp"]
        return sorted(own, key=lambda item: str(item["metadata"]["creationTimestamp"]))


def conduit(name: str, path: str, policy_name: str) -> dict[str, Any]:
    paths = [{"path": path, "policy": {"name": policy_name}}]
    return {"name": name, "kind": "file", "directory": True, "ingress": True, "paths": paths}


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    devcluster.try_kubectl("create", "namespace", NAMESPACE)
    log = tmp_path_factory.mktemp("operator") / "log"
    with Operator(devcluster, log, "--images", str(site.images), "--identity", "test") as running:
        yield running


@pytest.fixture(scope="module")
def pool(devcluster: Cluster, site: Site) -> Iterator[Runs]:
    made = Runs(devcluster, site)
    made.make()
    made.await_ready(1)
    yield made
    made.say("ok")
    devcluster.kubectl("-n", NAMESPACE, "delete", "taskruns,pipelines,tasks,policies", "--all", "--wait=false")
    made.delete()
    made.await_gone()


def test_what_a_member_needs_is_a_task_run(pool: Runs) -> None:
    (run,) = pool.brought_up()
    found = run["status"]
    assert condition(run, "Succeeded") == ("True", "Complete")
    assert (found["member"], found["instance"], found["exitCode"], found["retries"]) == ("runs-0", "once", 0, 0)
    assert (found["denials"], len(found["attempts"])) == (0, 1)
    (owner,) = run["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], run["metadata"].get("finalizers")) == ("Pipeline", "p", None)
    graph = (read(pool.cluster, "Pipeline", NAMESPACE, "p") or {})["status"]["graph"]
    assert graph == [{"task": "once", "waitsFor": []}]


def test_a_run_by_hand_succeeds_or_fails_with_its_exit_code(pool: Runs) -> None:
    pool.start("good")
    assert pool.awaited("good", "True", "Complete")["exitCode"] == 0
    pool.say("fail")
    pool.start("bad", retries={"limit": 1, "backoffSeconds": 1})
    found = pool.awaited("bad", "False", "Failed")
    assert (found["exitCode"], found["retries"]) == (3, 1)
    assert [attempt["reason"] for attempt in found["attempts"]] == ["Failed", "Failed"]
    pool.say("ok")
    assert [row["reason"] for row in pool.rows()] == ["Ready"], "a run by hand takes no member out of service"
    assert len(pool.brought_up()) == 1


def test_runs_take_turns_and_are_cancelled_and_timed_out(pool: Runs) -> None:
    pool.say("slow")
    pool.start("first")
    pool.awaited("first", "Unknown", "Running")
    pool.start("second", timeoutSeconds=3)
    pool.awaited("second", "Unknown", "Queued")
    pool.cancel("first")
    found = pool.awaited("first", "False", "Cancelled")
    assert found["attempts"][0]["reason"] == "Stopped"
    found = pool.awaited("second", "False", "TimedOut")
    assert found["attempts"][0]["reason"] == "Stopped"
    pool.say("ok")
    pool.start("brief", ttlSecondsAfterFinished=0)
    gone = lambda: read(pool.cluster, "TaskRun", NAMESPACE, "brief") is None  # noqa: E731
    until(gone, "a run whose time has come is gone", PATIENCE_SECONDS)


def test_a_killed_operator_takes_the_run_up_again(pool: Runs, operator: Operator) -> None:
    pool.say("slow")
    pool.start("kept", retries={"limit": 3})
    pool.awaited("kept", "Unknown", "Running")
    operator.kill()
    pool.say("ok")
    operator.start()
    found = pool.awaited("kept", "True", "Complete")
    assert (found["retries"], len(found["attempts"])) == (0, 1), f"the run was done twice: {found['attempts']}"


def test_a_monitor_that_starts_anew_costs_an_attempt(pool: Runs) -> None:
    pool.say("slow")
    pool.start("hurt", retries={"limit": 1, "backoffSeconds": 1})
    pool.awaited("hurt", "Unknown", "Running")
    for monitor in pool.monitors():
        os.kill(monitor, signal.SIGKILL)
    until(lambda: _attempts(pool, "hurt")[:1] == ["Interrupted"], "the attempt has ended", PATIENCE_SECONDS)
    pool.say("ok")
    found = pool.awaited("hurt", "True", "Complete")
    assert [attempt["reason"] for attempt in found["attempts"]] == ["Interrupted", "Succeeded"]
    pool.await_ready(1)
    until(lambda: len(pool.brought_up()) == 1, "only the last run that the member needed is kept", PATIENCE_SECONDS)


def test_a_deleted_run_leaves_no_task_behind(pool: Runs) -> None:
    pool.say("slow")
    pool.start("doomed")
    pool.awaited("doomed", "Unknown", "Running")
    pool.cluster.kubectl("-n", NAMESPACE, "delete", "taskrun", "doomed", "--timeout=120s")
    pool.start("next", timeoutSeconds=600)
    pool.awaited("next", "Unknown", "Running")
    pool.say("ok")
    pool.awaited("next", "True", "Complete")


def test_what_the_policies_refused_is_in_the_status(pool: Runs) -> None:
    pool.define(also=("peeker",))

    def refused() -> list[dict[str, Any]]:
        runs = [run for run in pool.brought_up() if run["spec"]["task"] == "peeker"]
        return [run["status"] for run in runs if condition(run, "Succeeded") == ("False", "Failed")]

    found = until(refused, "the run that may not read has failed", PATIENCE_SECONDS)[0]
    assert found["denials"] == 1
    assert found["refusals"] == [{"operation": "read", "conduits": "secrets", "policy": "closed", "count": 1}]
    assert "peeker may not read /b" in found["attempts"][0]["message"]


def _attempts(pool: Runs, name: str) -> list[str]:
    found = read(pool.cluster, "TaskRun", NAMESPACE, name) or {}
    return [attempt.get("reason", "") for attempt in (found.get("status") or {}).get("attempts") or ()]
