# SPDX-License-Identifier: BSD-2-Clause
"""The API server finds the same namespaces with a selector as the operator does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import selectors
from tests.reconcile.test_selectors import CASES, LABELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from testing.cluster import Cluster


def query(selector: dict[str, Any]) -> str:
    """Write a selector as a query has it; see metav1.FormatLabelSelector of k8s.io/apimachinery."""
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for requirement in selector.get("matchExpressions", ()):
        key, values = requirement["key"], ",".join(requirement.get("values", ()))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(forms.get(requirement["operator"], f"!{key}"))
    return ",".join(parts)


def test_the_api_server_finds_the_same(devcluster: Cluster, new_namespace: Callable[[], str]) -> None:
    names = {called: new_namespace() for called in LABELS}
    for called, labels in LABELS.items():
        body = {"metadata": {"labels": {**labels, "of-selectors": "yes"}}}
        devcluster.kubectl("patch", "namespace", names[called], "--type=merge", "-p", json.dumps(body))
    for selector, _ in CASES:
        if selector is None or any(part["operator"] == "Unheard" for part in selector.get("matchExpressions", ())):
            continue  # no query of the API server has these
        wanted = ",".join(part for part in (query(selector), "of-selectors=yes") if part)
        answer = devcluster.request("GET", "/api/v1/namespaces", labelSelector=wanted)
        assert answer.status_code == 200, answer.text
        items = answer.json()["items"]
        found = {item["metadata"]["name"] for item in items}
        assert found == {names[called] for called, labels in LABELS.items() if selectors.matches(selector, labels)}
