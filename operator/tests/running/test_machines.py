# SPDX-License-Identifier: BSD-2-Clause
"""Pools of provider bhyve with a real API server and real playbooks, on a stand-in for a FreeBSD host."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import path_of
from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running import freebsd_host
from tests.running.objects import condition, events, message
from tests.running.small_pools import PATIENCE_SECONDS, Site, SmallPool, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster
    from tests.running.freebsd_host import FreeBSDHost

ADDRESS = "127.0.0.3"
CHECKSUM = "ab" * 64


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("machines") / "log"
    with Operator(devcluster, log, "--images", str(site.images), "--identity", "test") as running:
        yield running


@pytest.fixture
def freebsd(tmp_path: Path) -> Iterator[FreeBSDHost]:
    with freebsd_host.serve(tmp_path, ADDRESS) as running:
        yield running


def spec(freebsd: FreeBSDHost, secret: str, **changes: Any) -> dict[str, Any]:
    key = " ".join(freebsd.server.key("host.pub").split()[:2])
    return {
        "provider": "bhyve",
        "replicas": 2,
        "jails": 2,
        "directory": "/var/lib/shai",
        "hosts": [{**host("rack", ADDRESS, freebsd.server.port, secret, key), "maxMembers": 8}],
        "virtualMachine": {
            "image": "freebsd-14.4-amd64",
            "checksum": CHECKSUM,
            "memoryMebibytes": 512,
            "storage": {"directory": str(freebsd.storage)},
        },
        "network": {"addresses": "10.66.0.0/24", "machines": "10.67.0.0/24"},
        **changes,
    }


def owner(cluster: Cluster) -> str:
    """Return the mark of the operator's installation."""
    secret = cluster.request("GET", path_of("v1", "secrets", NAMESPACE, "shai-authority")).json()
    return hashlib.sha256(base64.b64decode(secret["data"]["tls.crt"])).hexdigest()


def login(cluster: Cluster, freebsd: FreeBSDHost, name: str, key: str = "user") -> str:
    file = f"--from-file=ssh-privatekey={freebsd.server.directory / key}"
    cluster.kubectl("-n", NAMESPACE, "create", "secret", "generic", name, file)
    return name


def annotations_of(pool: SmallPool) -> dict[str, str]:
    found = (pool.read() or {})["metadata"].get("annotations") or {}
    return {name: text for name, text in found.items() if name.startswith("shai.dev/")}


def told(cluster: Cluster, pool: str, reason: str, *words: str) -> bool:
    found = [event["message"] for event in events(cluster, "default", pool) if event["reason"] == reason]
    return any(all(word in text for word in words) for text in found)


def test_a_host_is_surveyed_and_says_why_it_is_none(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, freebsd: FreeBSDHost
) -> None:
    pool = SmallPool(devcluster, new_namespace(), site, "jails")
    pool.make(**spec(freebsd, login(devcluster, freebsd, "jails-login")))
    pool.await_condition("Provisioned", "False", "NoVirtualization")
    assert "the host runs Linux, and bhyve is a part of FreeBSD" in message(pool.read(), "Provisioned")
    status = pool.status()
    assert status["hosts"] == [
        {
            "name": "rack",
            "reached": "True",
            "freeMemoryMebibytes": 8192,
            "virtualMachines": 1,
            "jails": 2,
            "version": "14.4-RELEASE",
        }
    ]
    (machine,) = status["virtualMachines"]
    assert (machine["name"], machine["state"], machine["address"]) == ("jails-vm-0", "Pending", "10.67.0.1")
    assert machine["image"] == f"freebsd-14.4-amd64@{CHECKSUM}"
    assert {row["reason"] for row in status["members"]} == {"NoVirtualization"}
    shown = devcluster.kubectl("get", "jailpool", "jails", "-o", "wide")
    assert "rack: 1 VM, 2 jails, 14.4-RELEASE" in shown
    assert told(devcluster, "jails", "NoVirtualization", "member jails-0", "choose a FreeBSD host")

    beside = SmallPool(devcluster, new_namespace(), site, "later")
    beside.make(**spec(freebsd, "jails-login"))
    beside.await_condition("Provisioned", "False", "BridgeConflict")
    assert "JailPool jails, which is older" in message(beside.read(), "Provisioned")
    until(
        lambda: told(devcluster, "later", "BridgeConflict", "JailPool jails, which is older"),
        "an event says it",
        PATIENCE_SECONDS,
    )
    assert "later-vm-0" not in freebsd.machines()
    for one in (beside, pool):
        one.delete()
        until(lambda one=one: one.read() is None, f"{one.name} is gone", PATIENCE_SECONDS)


def test_orphans_are_found_and_deleted_on_request(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, freebsd: FreeBSDHost
) -> None:
    mark = owner(devcluster)
    freebsd.machine("forgotten-vm-0", "forgotten", mark, CHECKSUM)
    freebsd.machine("orphans-vm-9", "orphans", mark, CHECKSUM)
    freebsd.machine("foreign-vm-0", "foreign", "f" * 64, CHECKSUM)
    freebsd.machine("torn-vm-0", "orphans", mark, CHECKSUM)
    (freebsd.storage / "vms" / "torn-vm-0" / "vm.json").write_text("")
    strange = os.fsdecode(b"z\xff\n\x1b")
    (freebsd.storage / "vms" / strange).mkdir()
    pool = SmallPool(devcluster, new_namespace(), site, "orphans")
    pool.make(**spec(freebsd, login(devcluster, freebsd, "orphans-login"), replicas=0))
    names = ["rack/forgotten-vm-0", "rack/orphans-vm-9", "rack/torn-vm-0", "rack/z???"]
    until(lambda: pool.status().get("orphans") == names, "orphans are listed", PATIENCE_SECONDS)
    until(lambda: told(devcluster, "orphans", "OrphansFound", *names), "an event lists them", PATIENCE_SECONDS)
    assert len(freebsd.machines()) == 5
    asked = "shai.dev/delete-orphans=rack/forgotten-vm-0,rack/foreign-vm-0"
    devcluster.kubectl("annotate", "jailpool", "orphans", asked)
    left = {"orphans-vm-9", "foreign-vm-0", "torn-vm-0", strange}
    until(lambda: freebsd.machines() == left, "the one that was named is gone", 120)
    until(lambda: pool.status().get("orphans") == names[1:], "the others are still listed", PATIENCE_SECONDS)
    until(
        lambda: annotations_of(pool) == {},
        "the annotation is gone: nothing that it names is an orphan",
        PATIENCE_SECONDS,
    )
    pool.delete()
    until(lambda: pool.read() is None, "the pool is gone", PATIENCE_SECONDS)


def test_a_refused_key_is_told_before_anything_is_made(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, freebsd: FreeBSDHost
) -> None:
    pool = SmallPool(devcluster, new_namespace(), site, "locked")
    pool.make(**spec(freebsd, login(devcluster, freebsd, "locked-login", "other-user")))

    def refused() -> bool:
        return condition(pool.read(), "Provisioned") == ("False", "Surveying") and "authorized_keys" in message(
            pool.read(), "Provisioned"
        )

    until(refused, "the condition names the cause", PATIENCE_SECONDS)
    (row,) = pool.status()["hosts"]
    assert (row["reached"], "does not let user" in row["message"]) == ("Unknown", True)
    pool.delete()
    until(lambda: pool.read() is None, "the pool is gone", PATIENCE_SECONDS)


def test_who_has_the_host_is_told(
    devcluster: Cluster, new_namespace: Callable[[], str], site: Site, freebsd: FreeBSDHost
) -> None:
    def hold(holder: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": holder, "renewTime": now, "leaseDurationSeconds": 3600}
        devcluster.kubectl("-n", NAMESPACE, "patch", lease, "--type=merge", "-p", json.dumps({"spec": spec}))

    def waits(pool: SmallPool, said: str) -> None:
        who = f"{said}, which another operator (elsewhere) has"
        until(lambda: who in message(pool.read(), "Provisioned"), who, PATIENCE_SECONDS)

    first = SmallPool(devcluster, new_namespace(), site, "first")
    first.make(**spec(freebsd, login(devcluster, freebsd, "turns-login")))
    first.await_condition("Provisioned", "False", "NoVirtualization")
    leases = devcluster.kubectl("-n", NAMESPACE, "get", "leases", "-o", "name").splitlines()
    (lease,) = [name for name in leases if name.partition("/")[2].startswith("shai-host-127-0-0-3-")]
    hold("elsewhere")
    first.delete()
    waits(first, "first-0 waits for its turn on host rack")
    hold("")
    until(lambda: first.read() is None, "the first pool is gone", PATIENCE_SECONDS)
    hold("elsewhere")
    second = SmallPool(devcluster, new_namespace(), site, "second")
    second.make(**spec(freebsd, "turns-login"))
    waits(second, "rack: waits for its turn on the host")
    assert second.status()["hosts"][0]["reached"] == "Unknown"
    hold("")
    second.await_condition("Provisioned", "False", "NoVirtualization")
    second.delete()
    until(lambda: second.read() is None, "the second pool is gone", PATIENCE_SECONDS)
