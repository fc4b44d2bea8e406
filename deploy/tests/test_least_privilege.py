# SPDX-License-Identifier: BSD-2-Clause
"""The rights of the operator's service account suffice for its work."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.control.webhooks import Address, configuration
from testing import kubeconfigs
from testing.operators import Operator
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testing.cluster import Cluster


@pytest.fixture
def operator(deployed: Cluster, rendered: list[dict[str, Any]], tmp_path: Path) -> Iterator[Operator]:
    token = deployed.kubectl("create", "token", "shai-operator", "-n", "shai-system", "--duration=1h").strip()
    kubeconfig = kubeconfigs.with_token(deployed.kubeconfig, token, tmp_path / "kubeconfig")
    (webhooks,) = [copy.deepcopy(obj) for obj in rendered if obj["kind"] == "ValidatingWebhookConfiguration"]
    for webhook in webhooks["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]  # there are no Services here
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:1{path}"
    deployed.kubectl("create", "-f", "-", stdin=yaml.safe_dump(webhooks))
    try:
        with Operator(
            deployed,
            tmp_path / "log",
            "--scrape-secret=shai-metrics-client",
            "--webhook-owner=shai-operator",
            kubeconfig=kubeconfig,
        ) as running:
            yield running
    finally:
        deployed.remove_webhooks()


def test_its_rights_suffice(deployed: Cluster, namespace: str, operator: Operator) -> None:
    pool = {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "JailPool",
        "metadata": {"name": namespace},
        "spec": {"provider": "local", "replicas": 0},
    }
    policy = {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"text": "policy p { read :- true. }"},
    }
    deployed.kubectl("create", "-f", "-", stdin=yaml.safe_dump(pool))

    def admitted() -> bool:
        return deployed.try_kubectl("apply", "-f", "-", stdin=yaml.safe_dump(policy)).returncode == 0

    until(admitted, "the operator answers admission requests", 20)

    def status(*what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(deployed.kubectl("get", *what, "-o", "json")).get("status") or {}
        return found

    until(lambda: status("policy", "p", "-n", namespace).get("latestRevision") == 1, "the policy has a revision")
    until(lambda: bool(status("jailpool", namespace).get("conditions")), "the pool has a status")
    deployed.delete("jailpool", namespace)
    owners = ("get", "validatingwebhookconfiguration", "shai.dev", "-o", "jsonpath={.metadata.ownerReferences[*].name}")
    deployed.kubectl("delete", "validatingwebhookconfiguration", "shai.dev")
    until(lambda: deployed.try_kubectl(*owners).returncode == 0, "the webhooks are back")
    assert deployed.kubectl(*owners) == "shai-operator", "they are deleted with the role"
    deployed.kubectl("get", "secret", "shai-metrics-client", "-n", "shai-system")
    # Keys of hosts are in Secrets that users let it read; pools of other tests may name some.
    refused = [line for line in operator.log.read_text().lower().splitlines() if "forbidden" in line]
    assert [line for line in refused if "get secret" not in line] == []


def test_the_deployed_webhooks_are_those_that_the_operator_makes_by_itself(rendered: list[dict[str, Any]]) -> None:
    (deployed,) = [obj["webhooks"] for obj in rendered if obj["kind"] == "ValidatingWebhookConfiguration"]
    own = configuration(Address("127.0.0.1", 9443, ""))["webhooks"]
    added = ("clientConfig", "namespaceSelector", "objectSelector")  # the last two by the API server

    def alike(webhooks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in webhook.items() if key not in added} for webhook in webhooks]

    assert alike(deployed) == alike(own)
