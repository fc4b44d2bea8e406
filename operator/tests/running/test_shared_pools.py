# SPDX-License-Identifier: BSD-2-Clause
"""Two namespaces that share a pool with real members: each has its own, and no data change hands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shai_operator.reconcile.tenancy import DISCARD
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import apply, await_condition, message, pipeline, policy, resource, share, task
from tests.running.small_pools import PATIENCE_SECONDS, ROLLOUT, SmallPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster
    from tests.running.small_pools import Site

MARK = """
import os
with open("/a/mark", "a") as mark:
    print("{space}", os.getuid(), "{whose}", file=mark)
"""


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("shared") / "log"
    with Operator(devcluster, log, "--images", str(site.images)) as running:
        yield running


@pytest.fixture
def pool(devcluster: Cluster, new_namespace: Callable[[], str], site: Site) -> Iterator[SmallPool]:
    made = SmallPool(devcluster, new_namespace(), site, "shared")
    yield made
    made.delete()
    made.await_gone()


def define(cluster: Cluster, space: str, whose: str = "first") -> None:
    """Apply a pipeline that marks the data of its member: the namespace, the task's user, and who made it."""
    command = ["/usr/bin/python3", "-Ic", MARK.format(space=space, whose=whose)]
    marks = task("mark", "open", command=command, writes=["files"])
    apply(
        cluster, space, policy("open"), marks, pipeline("p", ["mark"], "/a/**", "open", pool="shared", rollout=ROLLOUT)
    )


def marks(pool: SmallPool) -> dict[str, list[str]]:
    """Return the lines that tasks have written into the data of each member."""
    found = {path.parents[2].name: path.read_text().splitlines() for path in pool.directory.glob("*/data/a/mark")}
    return {row["name"]: found.get(row["name"], []) for row in pool.rows()}


def writers(pool: SmallPool) -> dict[str, set[str]]:
    """Return the namespaces whose tasks have written into the data of each member."""
    return {member: {line.split()[0] for line in lines} for member, lines in marks(pool).items()}


def owners(pool: SmallPool) -> dict[str, set[str]]:
    return {row["name"]: {row["namespace"]} if "namespace" in row else set() for row in pool.rows()}


def test_data_never_change_their_namespace_without_an_administrator_s_hand(
    devcluster: Cluster, pool: SmallPool, new_namespace: Callable[[], str]
) -> None:
    first, second = pool.namespace, new_namespace()
    both = {"names": [first, second]}
    pool.set(replicas=2, allowedNamespaces=both)
    for space in (first, second):
        define(devcluster, space)
    for space in (first, second):
        await_condition(devcluster, "Pipeline", space, "p", "Ready", ("True", "Complete"), seconds=PATIENCE_SECONDS)
    until(lambda: all(writers(pool).values()), "both tasks have run")
    assert {row["namespace"] for row in pool.rows()} == {first, second}
    assert writers(pool) == owners(pool)
    users = [lines[0].split()[1] for lines in marks(pool).values()]
    assert len(set(users)) == len(users), "each member's tasks have a user of their own"

    # A run is for the namespace's own member, although the other one has a task of the same name in force.
    theirs = next(member for member, spaces in owners(pool).items() if spaces == {second})
    for called, member in (("any", {}), ("theirs", {"member": theirs})):
        apply(devcluster, first, resource("TaskRun", called, pipeline="p", task="mark", **member))
    await_condition(devcluster, "TaskRun", first, "any", "Succeeded", ("True", "Complete"))
    pending = await_condition(devcluster, "TaskRun", first, "theirs", "Succeeded", ("Unknown", "Pending"))
    assert "which the pipeline's pool does not have" in message(pending, "Succeeded")
    assert writers(pool) == owners(pool)
    assert len(marks(pool)[theirs]) == 1, "the other namespace's task has run for itself only"
    devcluster.kubectl("-n", first, "delete", "taskrun", "theirs")
    before = marks(pool)

    # A namespace that may not use the pool any more: its member runs nothing, and keeps its data.
    pool.set(replicas=2, allowedNamespaces={"names": [second]})
    pool.await_condition("Ready", "False", "NamespaceWithdrawn")
    until(lambda: share(pool.read(), first).get("withdrawn"), "the status says so")
    assert marks(pool) == before

    # One that is deleted and made again is another one, whoever makes it.
    devcluster.kubectl("delete", "namespace", first, "--wait")
    devcluster.kubectl("create", "namespace", first)
    pool.set(replicas=2, allowedNamespaces=both)
    define(devcluster, first, "stranger")
    await_condition(devcluster, "Pipeline", first, "p", "Ready", ("False", "NoMembers"))
    assert marks(pool) == before

    # An administrator gives the data up: the member goes, and another one comes.
    devcluster.kubectl("annotate", "jailpool", "shared", f"{DISCARD}={first}")
    await_condition(devcluster, "Pipeline", first, "p", "Ready", ("True", "Complete"), seconds=PATIENCE_SECONDS)
    pool.await_condition("Ready", "True", "AllReady")
    until(lambda: all(writers(pool).values()), "the new member's task has run")
    assert writers(pool) == owners(pool)
    (lines,) = (lines for member, lines in marks(pool).items() if owners(pool)[member] == {first})
    assert {line.split()[2] for line in lines} == {"stranger"}, "nothing is left of who had the name before"
    annotations = (pool.read() or {})["metadata"].get("annotations") or {}
    assert DISCARD not in annotations, "what is done is taken out"
