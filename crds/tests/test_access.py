# SPDX-License-Identifier: BSD-2-Clause
"""Who may do what with the custom resources: every role, kind and verb, asked of a real API server about real accounts.

SECURITY.md names these tests in its table of what each role can do to data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from crds import kinds
from testing.cluster import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from testing.cluster import Cluster

READ = frozenset({"get", "list", "watch"})
WRITE = READ | {"create", "update", "patch", "delete", "deletecollection"}
OWN = frozenset({"operate", "collect"})
"""Verbs of Shai's own, which no role for people has."""

VERBS = sorted(WRITE | OWN | {"*"})
NOTHING: frozenset[str] = frozenset()
PLURALS = {kind.plural: kind for kind in kinds.ALL}
EDITED = frozenset(
    {"policies", "factsources", "tasks", "pipelines", "offlineanalyses", "analysisruns", "taskruns", "benchmarks"}
)

READING = frozenset({"get", "create", "delete"})

_VIEW = dict.fromkeys(EDITED | {"policyrevisions"}, READ)
_EDIT = dict.fromkeys(EDITED, WRITE) | {"policyrevisions": READ}
RIGHTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "shai-view": _VIEW,
    "view": _VIEW,
    "shai-edit": _EDIT,
    "edit": _EDIT,
    "shai-admin": _EDIT,
    "admin": _EDIT,
    "shai-member-reader": {"memberreadings": READING},
}
"""What each role may do in the namespace in which it is bound, by resource; what is not listed, it may not."""

POOL_ADMIN: Mapping[str, frozenset[str]] = {
    "jailpools": WRITE,
    "principals": WRITE,
    "jailpools/status": frozenset({"get"}),
    "principals/status": frozenset({"get"}),
    "jailpools/scale": frozenset({"get", "update", "patch"}),
    "memberreadings": READING,
}
"""What shai-pool-admin may do."""


class Account(NamedTuple):
    """A service account with one role, and the API server, which is asked what it may do."""

    cluster: Cluster
    namespace: str
    name: str

    def may(self, verb: str, resource: str, *, namespace: str | None = None, group: str = "shai.dev") -> bool:
        """Ask about ``resource[/subresource]``, by default in the account's own namespace."""
        plural, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
        attributes["namespace"] = self.namespace if namespace is None else namespace
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{self.namespace}:{self.name}",
                "groups": groups,
                "resourceAttributes": attributes,
            },
        }
        answer = self.cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer.status_code == 201, answer.text
        return bool(answer.json()["status"]["allowed"])

    def verbs(self, resource: str, **where: str) -> frozenset[str]:
        """Return which of the verbs it may use."""
        return frozenset(verb for verb in VERBS if self.may(verb, resource, **where))


def resources() -> Iterator[str]:
    """Yield every kind's plural, and its subresources, those for owner references included."""
    for plural, kind in PLURALS.items():
        yield plural
        yield from (
            f"{plural}/{subresource}"
            for subresource in kind.definition()["spec"]["versions"][0].get("subresources", ())
        )
        yield f"{plural}/finalizers"


@pytest.fixture(scope="module")
def account(devcluster: Cluster, new_namespace: Callable[[], str]) -> Callable[[str], Account]:
    """Return a function that returns the account with a role; all roles are bound in one namespace."""
    space, made = new_namespace(), set[str]()

    def with_role(role: str) -> Account:
        found = Account(devcluster, space, role)
        if role not in made:
            made.add(role)
            devcluster.kubectl("-n", space, "create", "serviceaccount", role)
            bound = "rolebinding", role, f"--clusterrole={role}", f"--serviceaccount={space}:{role}"
            devcluster.kubectl("-n", space, "create", *bound)
            until(
                lambda: found.may("get", next(iter(RIGHTS[role]))),
                "the authorizer knows the binding, and a usual role Shai's part",
            )
        return found

    return with_role


@pytest.fixture(scope="module")
def pool_admin(devcluster: Cluster, new_namespace: Callable[[], str]) -> Iterator[Account]:
    space = new_namespace()
    devcluster.kubectl("-n", space, "create", "serviceaccount", "owner")
    subject = f"--serviceaccount={space}:owner"
    devcluster.kubectl("create", "clusterrolebinding", space, "--clusterrole=shai-pool-admin", subject)
    devcluster.kubectl("-n", "default", "create", "rolebinding", space, "--role=shai-pool-events", subject)
    found = Account(devcluster, space, "owner")
    until(lambda: found.may("get", "jailpools", namespace=""), "the authorizer knows the binding")
    until(lambda: found.may("get", "events", namespace="default", group=""), "the authorizer knows the other one")
    yield found
    devcluster.kubectl("delete", "clusterrolebinding", space)
    devcluster.kubectl("-n", "default", "delete", "rolebinding", space)


@pytest.mark.parametrize("role", RIGHTS)
def test_roles_of_a_namespace_have_these_rights_and_no_others(account: Callable[[str], Account], role: str) -> None:
    user = account(role)
    has = {resource: verbs for resource in resources() if (verbs := user.verbs(resource))}
    assert has == RIGHTS[role]


@pytest.mark.parametrize("role", RIGHTS)
def test_roles_of_a_namespace_have_none_elsewhere(account: Callable[[str], Account], namespace: str, role: str) -> None:
    user = account(role)
    assert {resource: user.verbs(resource, namespace=namespace) for resource in PLURALS} == dict.fromkeys(
        PLURALS, NOTHING
    )
    assert user.verbs("events", namespace="default", group="") == NOTHING, "events of JailPools quote hosts"
    assert user.verbs("configmaps", namespace="shai-system", group="") == NOTHING, "releases are there"
    assert user.verbs("secrets", namespace="shai-system", group="") == NOTHING, "the operator's authority is there"


@pytest.mark.parametrize("role", ["shai-view", "shai-edit", "shai-admin"])
def test_shai_s_roles_have_nothing_else_of_the_namespace(account: Callable[[str], Account], role: str) -> None:
    user = account(role)
    assert user.verbs("events", group="") == READ
    for resource in (
        "secrets",
        "configmaps",
        "pods",
        "pods/log",
        "pods/exec",
        "serviceaccounts",
        "serviceaccounts/token",
    ):
        assert user.verbs(resource, group="") == NOTHING, resource
    assert not user.may("impersonate", "serviceaccounts", group="")
    rbac = "rbac.authorization.k8s.io"
    assert user.verbs("roles", group=rbac) == NOTHING
    bindings = READ | {"create", "delete"} if role == "shai-admin" else NOTHING
    assert user.verbs("rolebindings", group=rbac) == bindings


def test_a_pool_s_administrator_has_these_rights_and_no_others(pool_admin: Account) -> None:
    has = {resource: verbs for resource in resources() if (verbs := pool_admin.verbs(resource, namespace=""))}
    assert has == POOL_ADMIN
    for resource in ("nodes", "secrets", "configmaps", "events", "namespaces", "pods"):
        assert pool_admin.verbs(resource, namespace="", group="") == NOTHING, resource
    assert pool_admin.verbs("events", namespace="default", group="") == READ
    assert pool_admin.verbs("secrets", namespace="shai-system", group="") == NOTHING


def test_an_administrator_of_shai_hands_on_its_roles_and_no_others(
    devcluster: Cluster, namespace: str, tmp_path: Any
) -> None:
    user = devcluster.account(namespace, "head", "--clusterrole=shai-admin", tmp_path)
    try:
        until(
            lambda: user.try_kubectl("auth", "can-i", "create", "rolebindings", "-n", namespace).returncode == 0,
            "bound",
        )
        for role in ("shai-view", "shai-edit", "shai-admin"):
            user.kubectl("-n", namespace, "create", "rolebinding", f"for-{role}", f"--clusterrole={role}", "--user=new")
        user.kubectl("-n", namespace, "delete", "rolebinding", "for-shai-edit")
        for role in ("edit", "view", "cluster-admin", "shai-pool-admin", "shai-collect-revisions"):
            bound = "create", "rolebinding", f"for-{role}", f"--clusterrole={role}", "--user=new"
            refused = user.try_kubectl("-n", namespace, *bound)
            assert "is attempting to grant RBAC permissions not currently held" in refused.stderr, role
        everywhere = "create", "clusterrolebinding", "mine", "--clusterrole=shai-edit", "--user=new"
        assert "forbidden" in user.try_kubectl(*everywhere).stderr
    finally:
        user.close()


def test_every_file_is_in_the_kustomization() -> None:
    folder = ROOT / "crds" / "access"
    text = (folder / "kustomization.yaml").read_text()
    assert all(f"  - {file.name}\n" in text for file in folder.glob("*.yaml") if file.name != "kustomization.yaml")
