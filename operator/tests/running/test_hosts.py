# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that cannot be reached, and slow playbooks: the status says what is wrong, and everything else continues."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testing.operators import NAMESPACE, Operator
from testing.ports import free_port
from testing.waiting import until
from tests.providers import sshd
from tests.providers.support import arguments
from tests.running.objects import apply, await_condition, condition, events, message, policy
from tests.running.small_pools import PATIENCE_SECONDS, Site, SmallPool, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster

ADDRESS = "127.0.0.2"
"""The address of the hosts. It is not this machine's, which has a lock of its own."""


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("hosts") / "log"
    with Operator(devcluster, log, "--images", str(site.images), "--identity", "test") as running:
        yield running


def test_hosts_out_of_reach_are_named_and_can_be_given_up(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, tmp_path: Path
) -> None:
    with sshd.serve(tmp_path, ADDRESS) as server:
        beside = SmallPool(devcluster, new_namespace(), site, "beside")
        beside.make(replicas=1)
        for name, key in (("right", "user"), ("wrong", "other-user")):
            file = f"--from-file=ssh-privatekey={server.directory / key}"
            devcluster.kubectl("-n", NAMESPACE, "create", "secret", "generic", name, file)
        key = " ".join(server.key("host.pub").split()[:2])
        pool = SmallPool(devcluster, new_namespace(), site, "away")
        hosts = [
            {**host("closed", ADDRESS, free_port(ADDRESS), "right", key), "maxMembers": 1},
            {**host("locked", ADDRESS, server.port, "wrong", key), "maxMembers": 1},
        ]
        pool.make(replicas=2, provider="linux", hosts=hosts)

        def told(reason: str, *words: str) -> bool:
            """Whether an event of this reason has these words; a slow host is also reported as unreachable."""
            found = [event["message"] for event in events(devcluster, "default", "away") if event["reason"] == reason]
            return any(all(word in message for word in words) for message in found)

        refused = "HostUnreachable", "host closed", "Connection refused"
        locked = "AuthenticationFailed", "host locked", "authorized_keys"
        until(lambda: told(*refused) and told(*locked), "both are told", PATIENCE_SECONDS)
        assert condition(pool.read(), "Ready")[0] == "False"
        beside.await_ready(1)
        beside.delete()

        pool.delete()
        until(lambda: "force-delete" in message(pool.read(), "Provisioned"), "the way out is named", PATIENCE_SECONDS)
        assert pool.read() is not None
        devcluster.kubectl("annotate", "jailpool", "away", "shai.dev/force-delete=true")
        pool.await_gone()
        until(lambda: told("MemberGivenUp"), "an event says what was left")
        beside.await_gone()


def test_slow_playbooks_hold_up_nothing_else_and_end_with_the_operator(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, operator: Operator
) -> None:
    site.image("slow")
    monitor = site.images / "slow" / "bin" / "shai"
    monitor.unlink()
    monitor.write_text("#!/bin/sh\nexec sleep 1000\n")
    monitor.chmod(0o755)
    pools = [SmallPool(devcluster, new_namespace(), site, name) for name in ("slow-a", "slow-b")]
    for pool in pools:
        pool.make(replicas=1, image="slow")

    def waiting() -> bool:
        return any("ready" in row.get("progress", {}).get("task", "") for pool in pools for row in pool.rows())

    def playbooks() -> dict[int, str]:
        commands = {pid: arguments(pid) for pid in _descendants(operator.process.pid)}
        return {pid: command for pid, command in commands.items() if "ansible-playbook" in command}

    until(waiting, "a playbook waits for a monitor", PATIENCE_SECONDS)
    before = playbooks()
    namespace = new_namespace()
    apply(devcluster, namespace, *[policy(f"p-{number}") for number in range(5)])
    for number in range(5):
        await_condition(devcluster, "Policy", namespace, f"p-{number}", "Accepted", ("True", "Accepted"))
    assert before.items() & playbooks().items(), "the policies had to wait for the playbook"

    children = {pid: arguments(pid) for pid in _descendants(operator.process.pid)}
    operator.stop()
    assert operator.process.returncode == 0
    until(
        lambda: not any(command and arguments(pid) == command for pid, command in children.items()),
        "the operator's processes end with it",
    )
    operator.start()
    until(waiting, "the playbook is started again", PATIENCE_SECONDS)
    for pool in pools:
        pool.delete()
    for pool in pools:
        pool.await_gone()


def _descendants(process: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            children += map(int, thread.read_text().split())
    return [*children, *(pid for child in children for pid in _descendants(child))]
