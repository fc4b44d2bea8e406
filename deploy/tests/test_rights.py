# SPDX-License-Identifier: BSD-2-Clause
"""The rights of the operator's service account, checked by a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from testing.cluster import Cluster

ACCOUNT = "system:serviceaccount:shai-system:shai-operator"
OWN, OTHER = "shai-system", "default"
KINDS = (
    "policies", "policyrevisions", "factsources", "principals", "tasks", "pipelines", "jailpools",
    "offlineanalyses", "analysisruns", "taskruns", "benchmarks", "memberreadings",
)  # fmt: skip

ALLOWED: list[tuple[str, str, str]] = [
    *((verb, f"{kind}.shai.dev", OTHER) for kind in KINDS for verb in ("get", "list", "watch")),
    *(("patch", f"{kind}.shai.dev/status", OTHER) for kind in KINDS if kind != "policyrevisions"),
    *(("operate", f"{kind}.shai.dev", "") for kind in KINDS),
    *(("patch", f"{kind}.shai.dev", "") for kind in ("jailpools", "taskruns")),
    *(
        (verb, f"{kind}.shai.dev", OTHER)
        for kind in ("policyrevisions", "analysisruns", "taskruns")
        for verb in ("create", "delete")
    ),
    ("delete", "memberreadings.shai.dev", OTHER),
    *(("update", f"{kind}.shai.dev/finalizers", OTHER) for kind in ("policies", "pipelines", "jailpools")),
    *((verb, "events", OTHER) for verb in ("get", "create", "patch")),
    *((verb, "namespaces", "") for verb in ("get", "list", "watch")),
    *((verb, "configmaps", OWN) for verb in ("get", "list", "create", "delete")),
    ("create", "configmaps", OTHER),
    ("create", "secrets", OWN),
    ("get", "secrets/shai-authority", OWN),
    ("patch", "secrets/shai-metrics-client", OWN),
    *((verb, "leases.coordination.k8s.io", OWN) for verb in ("get", "create", "update")),
    *((verb, "customresourcedefinitions.apiextensions.k8s.io", "") for verb in ("list", "watch")),
    *(
        (verb, "validatingwebhookconfigurations.admissionregistration.k8s.io/shai.dev", "")
        for verb in ("get", "list", "watch", "patch", "create")
    ),
    ("get", "clusterroles.rbac.authorization.k8s.io/shai-operator", ""),
]

REFUSED: list[tuple[str, str, str]] = [
    # Objects of users.
    *(
        (verb, f"{kind}.shai.dev", OTHER)
        for kind in ("policies", "factsources", "principals", "tasks", "pipelines", "offlineanalyses", "benchmarks")
        for verb in ("create", "update", "patch", "delete")
    ),
    *((verb, "analysisruns.shai.dev", OTHER) for verb in ("update", "patch")),
    *((verb, "memberreadings.shai.dev", OTHER) for verb in ("create", "update", "patch", "deletecollection")),
    *((verb, "jailpools.shai.dev", OTHER) for verb in ("create", "update", "delete", "deletecollection")),
    ("patch", "policyrevisions.shai.dev", OTHER),
    ("update", "jailpools.shai.dev/scale", OTHER),
    # Secrets: its own by name, and no others.
    ("get", "secrets", OWN),
    ("get", "secrets/example-login", OWN),
    *((verb, "secrets/shai-authority", OWN) for verb in ("update", "patch", "delete")),
    *((verb, "secrets/shai-metrics-client", OWN) for verb in ("get", "delete")),
    *((verb, "secrets", OWN) for verb in ("list", "watch", "delete")),
    *((verb, "secrets", OTHER) for verb in ("get", "list", "create")),
    # Other namespaces.
    *((verb, "configmaps", OTHER) for verb in ("get", "list", "update", "patch", "delete")),
    *((verb, "leases.coordination.k8s.io", OTHER) for verb in ("get", "create")),
    # Its own rights, and the cluster's machinery.
    *((verb, "clusterroles.rbac.authorization.k8s.io", "") for verb in ("create", "patch", "bind", "escalate")),
    *((verb, "rolebindings.rbac.authorization.k8s.io", OWN) for verb in ("create", "patch")),
    ("impersonate", "users", ""),
    ("create", "serviceaccounts/token", OWN),
    *((verb, "pods", OWN) for verb in ("create", "get", "list")),
    ("create", "pods/exec", OWN),
    ("patch", "deployments.apps", OWN),
    *((verb, "customresourcedefinitions.apiextensions.k8s.io", "") for verb in ("create", "patch", "delete")),
    ("get", "nodes", ""),
    *((verb, "namespaces", "") for verb in ("create", "update", "patch", "delete")),
    *(
        (verb, "validatingwebhookconfigurations.admissionregistration.k8s.io", "")
        for verb in ("patch", "delete", "list", "watch")
    ),
    *(
        (verb, "validatingwebhookconfigurations.admissionregistration.k8s.io/other", "")
        for verb in ("get", "patch", "delete")
    ),
    ("delete", "validatingwebhookconfigurations.admissionregistration.k8s.io/shai.dev", ""),
    ("get", "clusterroles.rbac.authorization.k8s.io/cluster-admin", ""),
    ("create", "mutatingwebhookconfigurations.admissionregistration.k8s.io", ""),
]


def may(cluster: Cluster, verb: str, target: str, namespace: str) -> bool:
    """Ask whether the account may do something to ``resource[.group][/subresource or name]``."""
    resource, _, name = target.partition("/")
    plural, _, group = resource.partition(".")
    subresource = name if name in {"status", "finalizers", "scale", "token", "exec"} else ""
    attributes: dict[str, Any] = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    attributes |= {"name": "" if subresource else name, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "groups": ["system:serviceaccounts"], "resourceAttributes": attributes},
    }
    answer = cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer.status_code == 201, answer.text
    return bool(answer.json()["status"]["allowed"])


@pytest.mark.parametrize(("verb", "target", "namespace"), ALLOWED, ids=str)
def test_may(deployed: Cluster, verb: str, target: str, namespace: str) -> None:
    assert may(deployed, verb, target, namespace)


@pytest.mark.parametrize(("verb", "target", "namespace"), REFUSED, ids=str)
def test_may_not(deployed: Cluster, verb: str, target: str, namespace: str) -> None:
    assert not may(deployed, verb, target, namespace)


def test_kubectl_says_the_same(deployed: Cluster) -> None:
    yes = deployed.kubectl(
        "auth", "can-i", "patch", "pipelines.shai.dev", "--subresource=status", f"--as={ACCOUNT}", "-A"
    )
    assert yes.strip() == "yes"
    no = deployed.try_kubectl("auth", "can-i", "get", "secrets", f"--as={ACCOUNT}", "-A")
    assert (no.stdout.strip(), no.returncode) == ("no", 1)


def test_no_rule_is_for_everything(rendered: list[dict[str, Any]]) -> None:
    roles = [obj for obj in rendered if obj["kind"] in ("ClusterRole", "Role")]
    assert len(roles) == 2
    for role in roles:
        for rule in role["rules"]:
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]


def test_the_example_lets_it_read_one_key(deployed: Cluster) -> None:
    file = str(ROOT / "deploy" / "examples" / "login.yaml")
    deployed.kubectl("apply", "-f", file)
    try:
        until(lambda: may(deployed, "get", "secrets/example-login", OWN), "the example's right is known")
        assert not may(deployed, "get", "secrets/other-login", OWN)
        assert not may(deployed, "list", "secrets", OWN)
    finally:
        deployed.kubectl("delete", "-f", file)
    until(lambda: not may(deployed, "get", "secrets/example-login", OWN), "the right is gone with the example")


@pytest.mark.parametrize(("folder", "space"), [("benchmarks", "shai-load"), ("shards", "shai-analysis")])
def test_jobs_are_made_in_a_namespace_of_their_own(deployed: Cluster, folder: str, space: str) -> None:
    """What deploy/benchmarks and deploy/shards add, for pods that generate load or analyse."""
    deployed.kubectl("apply", "--server-side", "--validate=strict", "-k", str(ROOT / "deploy" / folder))
    until(lambda: may(deployed, "create", "jobs.batch", space), "the authorizer knows the role")
    for verb in ("create", "get", "list", "patch", "delete"):
        assert may(deployed, verb, "jobs.batch", space)
        assert not may(deployed, verb, "jobs.batch", OWN), "their pods could read the Secrets there"
        assert not may(deployed, verb, "jobs.batch", OTHER)
    assert may(deployed, "create", "secrets", space)
    assert may(deployed, "create", "networkpolicies.networking.k8s.io", space)
    for verb in ("get", "list", "delete"):
        assert not may(deployed, verb, "secrets", space)
    for verb in ("create", "get", "list"):
        assert not may(deployed, verb, "pods", space)
    assert not may(deployed, "create", "pods/exec", space)
