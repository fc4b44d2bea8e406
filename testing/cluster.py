# SPDX-License-Identifier: BSD-2-Clause
"""A real API server for tests: a devcluster with its own directory and port."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import yaml

from testing import kubeconfigs
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "bin" / "devcluster"

_KUBECTL_SECONDS = 600
_STOP_SECONDS = 60
_COLLECTED = "400"
"""By how many percent its memory grows before an API server collects garbage, which took a quarter of its time."""
_ESTABLISHED_SECONDS = 60
_RESOURCES = "/apis/shai.dev/v1alpha1"
_WEBHOOKS = "validatingwebhookconfiguration", "shai.dev"
_REQUEST_SECONDS = 120.0


class ClusterStartError(Exception):
    """There is no devcluster for the tests; the text says why and what to do."""


class Cluster:
    """The API server, used as its administrator through kubectl or plain requests."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        """For programs that read KUBECONFIG."""
        self._client = _client(kubeconfig)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and return its output; AssertionError with its error message when it fails."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: status {done.returncode}: {done.stderr}")
        return done.stdout

    def try_kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl, and return the result even if it fails."""
        return subprocess.run(
            [PROGRAM, "kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_KUBECTL_SECONDS,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            check=False,
        )

    def create_namespace(self, name: str) -> None:
        """Make a namespace, which is new."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        answer = self.request("POST", path_of("v1", "namespaces"), body)
        assert answer.is_success, answer.text

    def account(self, namespace: str, name: str, role: str, directory: Path) -> Cluster:
        """Make a service account with a role in its namespace and no other rights; return the cluster with its account.

        ``role`` is an option of kubectl: ``--role=NAME`` or ``--clusterrole=NAME``. The account's kubeconfig is written
        to ``directory``.
        """
        self.kubectl("-n", namespace, "create", "serviceaccount", name)
        self.kubectl("-n", namespace, "create", "rolebinding", name, role, f"--serviceaccount={namespace}:{name}")
        token = self.kubectl("-n", namespace, "create", "token", name, "--duration=1h").strip()
        return Cluster(kubeconfigs.with_token(self.kubeconfig, token, directory / f"{namespace}-{name}"))

    def delete(self, kind: str, name: str) -> None:
        """Delete a cluster-scoped object, if it exists, and wait until it is deleted."""
        self.kubectl("delete", kind, name, f"--timeout={_KUBECTL_SECONDS - 10}s", "--ignore-not-found")

    def asks_webhooks(self) -> bool:
        """Whether the API server asks Shai's webhooks, while nobody answers them."""
        policy = {
            "apiVersion": "shai.dev/v1alpha1",
            "kind": "Policy",
            "metadata": {"name": "asked-about"},
            "spec": {"text": "policy p { read :- true. }"},
        }
        answer = self.request("POST", f"{_RESOURCES}/namespaces/default/policies", policy, dryRun="All")
        return "failed calling webhook" in answer.text

    def remove_webhooks(self) -> None:
        """Delete Shai's webhooks, and wait until the API server does not ask them: it learns of it a moment later."""
        self.kubectl("delete", *_WEBHOOKS, "--ignore-not-found")
        until(lambda: not self.asks_webhooks(), "the API server does not ask the webhooks")

    def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **parameters: str
    ) -> httpx2.Response:
        """Send one request; ``path`` starts with /api."""
        content = None if body is None else json.dumps(body)
        return self._client.request(
            method, path, content=content, params=parameters, headers={"Content-Type": content_type}
        )


def path_of(api_version: str, plural: str, namespace: str = "", name: str = "") -> str:
    """Return the path of a resource's objects, or of the object ``name``."""
    top = "/api" if "/" not in api_version else "/apis"
    parts = [top, api_version, *(["namespaces", namespace] if namespace else []), plural, *([name] if name else [])]
    return "/".join(parts)


class Server:
    """A devcluster in one directory, which may be stopped and started again with its data."""

    def __init__(self, directory: Path) -> None:
        if not PROGRAM.exists():
            raise ClusterStartError(f"{PROGRAM.relative_to(ROOT)} is missing: run make build-devcluster")
        self._directory = directory
        self._log = directory.with_suffix(".log")
        self._process: subprocess.Popen[str] | None = None

    def up(self) -> Path:
        """Start it and return its kubeconfig, which stays the same."""
        command = [str(PROGRAM), "up", "--foreground", "--output", "json", "--directory", str(self._directory)]
        environment = {**os.environ, "GOGC": _COLLECTED}
        with self._log.open("a") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise ClusterStartError(f"the devcluster did not come up: {self._log.read_text()}")
        return Path(json.loads(line)["kubeconfig"])

    def down(self) -> None:
        """Stop it, if it runs."""
        if self._process is not None:
            with self._process as process:
                process.terminate()
                until(lambda: process.poll() is not None, f"the devcluster ends; its log: {self._log}", _STOP_SECONDS)
            self._process = None


@contextmanager
def start(directory: Path) -> Iterator[Cluster]:
    """Run a devcluster in ``directory``, which is new, while the context lasts."""
    with running(Server(directory)) as cluster:
        yield cluster


@contextmanager
def running(server: Server) -> Iterator[Cluster]:
    """Run a server while the context lasts; it may be down in between."""
    try:
        cluster = Cluster(server.up())
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        server.down()


def install(cluster: Cluster) -> None:
    """Apply Shai's resources, and wait until they are served and clients find them."""
    applied = cluster.kubectl("apply", "--server-side", "-k", str(ROOT / "crds"), "-o", "json")
    await_established(cluster)
    definitions = [obj for obj in json.loads(applied)["items"] if obj["kind"] == "CustomResourceDefinition"]
    kinds = {definition["spec"]["names"]["kind"] for definition in definitions}
    until(lambda: kinds <= _found(cluster), "clients find all kinds")


def await_established(cluster: Cluster, *names: str) -> None:
    """Wait until definitions, by default all, are served."""
    targets = [f"crd/{name}" for name in names] or ["crd", "--all"]

    def established() -> bool:
        return cluster.try_kubectl("wait", "--for=condition=Established", "--timeout=5s", *targets).returncode == 0

    until(established, "the definitions are served", _ESTABLISHED_SECONDS)


def _found(cluster: Cluster) -> set[str]:
    """Return the kinds that discovery lists and the schemas describe, a moment after they are established."""
    listed, described = cluster.request("GET", _RESOURCES), cluster.request("GET", f"/openapi/v3{_RESOURCES}")
    if httpx2.codes.NOT_FOUND in {listed.status_code, described.status_code}:
        return set()
    names = {name.rpartition(".")[2] for name in described.json()["components"]["schemas"]}
    return names & {resource["kind"] for resource in listed.json()["resources"]}


def _client(kubeconfig: Path) -> httpx2.Client:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return httpx2.Client(
        base_url=cluster["server"], verify=kubeconfigs.tls(cluster, user), timeout=_REQUEST_SECONDS, headers=headers
    )
