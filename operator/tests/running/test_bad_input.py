# SPDX-License-Identifier: BSD-2-Clause
"""Secrets of the wrong shape, and objects of versions that do not exist: a condition, or a refusal, says what to do."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.reconcile.objects import PLURALS
from testing.cluster import ROOT, install, path_of
from testing.operators import NAMESPACE, Operator
from testing.waiting import until
from tests.running.objects import API, apply, await_condition, message, pipeline, policy, resource, serving, task
from tests.running.small_pools import PATIENCE_SECONDS, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from testing.cluster import Cluster

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
SECRETS: dict[str, tuple[str, bytes] | None] = {
    "absent": None,
    "renamed": ("id_ed25519", b"x"),
    "empty": ("ssh-privatekey", b""),
    "junk": ("ssh-privatekey", bytes(range(256)) * 64),
    "certificate": ("ssh-privatekey", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
    "begun": ("ssh-privatekey", b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk"),
}
"""By the name of the host that refers to it: the only entry."""
UNREADABLE = "expected a private key for SSH without a passphrase"
SAID = {
    "absent": "does not exist; make it: kubectl -n shai-system create secret generic absent",
    "renamed": "has no key ssh-privatekey; make it: kubectl",
    "empty": "has no key ssh-privatekey; make it: kubectl",
}
FUTURE = {
    "JailPool": (resource("JailPool", "future", provider="cloud", replicas=1), "Provisioned", "ProviderUnknown"),
    "Task": (task("future", "open", run="Sometimes"), "Ready", "Invalid"),
    "Policy": (policy("future", mode="Shadow"), "Accepted", "Invalid"),
    "Pipeline": (
        pipeline("future", ["once"], "/a/**", "open", pool="future-serving", mode="odd"),
        "Accepted",
        "Invalid",
    ),
}
"""Objects that a later version of the definitions has let in, and what the present operator says of them."""
REMEDIES = {
    "JailPool": "provider 'cloud' is none that this operator knows (bhyve, linux, local): run the version",
    "Task": 'spec.run: "Sometimes" is not allowed; expected Once or Always',
    "Policy": 'spec.mode: "Shadow" is not allowed; expected Audit, Warn or Enforce',
    "Pipeline": 'spec.mode: "odd" is not allowed; expected',
}


def loosened(kind: str) -> dict[str, Any]:
    """Return the definition of a kind as a later version may have it: more words, and one more field."""
    made: dict[str, Any] = yaml.safe_load((ROOT / "crds/bases" / f"{PLURALS[kind]}.yaml").read_text())
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["ofTheFuture"] = {"type": "string"}
    spec.pop("x-kubernetes-validations", None)
    for field in spec["properties"].values():
        field.pop("enum", None)
    return made


def place(kind: str, namespace: str, name: str = "") -> str:
    return path_of(API, PLURALS[kind], "" if kind == "JailPool" else namespace, name)


@pytest.fixture(scope="module")
def stored(devcluster: Cluster, new_namespace: Callable[[], str]) -> str:
    """Store objects of the future, and go back to the present definitions; returns their namespace."""
    namespace = new_namespace()
    definitions = "\n---\n".join(json.dumps(loosened(kind)) for kind in FUTURE)
    devcluster.kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    try:
        for kind, (body, _, _) in FUTURE.items():
            body["spec"]["ofTheFuture"] = "unknown"

            def made(kind: str = kind, body: dict[str, Any] = body) -> bool:
                answer = devcluster.request("POST", place(kind, namespace), body, fieldValidation="Strict")
                return answer.status_code == 201

            until(made, f"a {kind} of the future is stored")
    finally:
        install(devcluster)
    apply(devcluster, namespace, policy("open"), task("once", "open"), serving(namespace, "future-serving"))
    return namespace


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, stored: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    assert stored
    log = tmp_path_factory.mktemp("bad") / "log"
    with Operator(devcluster, log, "--identity", "test", has_pools=True) as running:
        yield running


def test_objects_of_a_later_version_say_what_is_not_known(devcluster: Cluster, stored: str, operator: Operator) -> None:
    for kind, (_, condition, reason) in FUTURE.items():
        found = await_condition(devcluster, kind, stored, "future", condition, ("False", reason))
        assert REMEDIES[kind] in message(found, condition)
        devcluster.request("DELETE", place(kind, stored, "future"))
    devcluster.kubectl("delete", "jailpool", "future-serving", "--wait=false")
    assert "Traceback" not in operator.log.read_text()


def test_a_version_that_does_not_exist_is_named(devcluster: Cluster, namespace: str) -> None:
    body = {**policy("open"), "apiVersion": "shai.dev/v9"}
    refused = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(body))
    assert refused.returncode != 0
    assert 'no matches for kind "Policy" in version "shai.dev/v9"' in refused.stderr


def test_secrets_of_the_wrong_shape_are_named_with_what_makes_them_right(devcluster: Cluster, tmp_path: Path) -> None:
    """Nothing tries to log in with them: no host has the address."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "locked", "-f", tmp_path / "locked"], check=True, timeout=300
    )
    secrets = {**SECRETS, "locked": ("ssh-privatekey", (tmp_path / "locked").read_bytes())}
    for name, entry in secrets.items():
        if entry is not None:
            (tmp_path / name).write_bytes(entry[1])
            file = f"--from-file={entry[0]}={tmp_path / name}"
            devcluster.kubectl("-n", NAMESPACE, "create", "secret", "generic", name, file)
    hosts = [{**host(name, "192.0.2.9", 22, name, HOST_KEY), "maxMembers": 1} for name in secrets]
    pool = resource(
        "JailPool", "secrets", provider="linux", replicas=len(hosts), hosts=hosts, update={"maxUnavailable": "100%"}
    )
    devcluster.kubectl("apply", "-f", "-", stdin=json.dumps(pool))

    def told() -> dict[str, str]:
        rows = devcluster.request("GET", place("JailPool", "", "secrets")).json().get("status", {}).get("members", [])
        return {row["host"]: row["message"] for row in rows if row["reason"] == "PlaybookFailed"}

    until(lambda: set(told()) == set(secrets), "each host's member says what is wrong", PATIENCE_SECONDS)
    for name, said in told().items():
        assert f"host {name}: Secret shai-system/{name}" in said
        assert SAID.get(name, UNREADABLE) in said
        assert not [other for other in secrets if other != name and f"/{other}" in said]
    devcluster.kubectl("annotate", "jailpool", "secrets", "shai.dev/force-delete=true")
    devcluster.kubectl("delete", "jailpool", "secrets", "--timeout=120s")
    devcluster.kubectl("-n", NAMESPACE, "delete", "secret", *(name for name, entry in secrets.items() if entry))
