# SPDX-License-Identifier: BSD-2-Clause
"""Workers of a measurement as pods of a Job, which connect to the measurement on this machine.

The Job is in a namespace of its own: whoever may make Jobs in a namespace can read all its Secrets. It is made
suspended, and begins when the pods' certificate and their NetworkPolicy, which it owns, are there. Both sides get
certificates of an authority that exists for one measurement, so a worker's is good for nothing else.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from loadgen.driving import joining
from shai_operator.control.measuring import Joining, MeasuringError
from shai_operator.providers import authority, directories
from shai_operator.reconcile.objects import owner_reference, reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from shai_operator.cluster.client import Cluster

NAMESPACE = "shai-load"
PORTS = (1024, 65535)
"""At which a front end may listen."""

_MOUNTED = "/run/shai-load"
_USER = 65532
_BACKLOG = 128
"""Connections that wait until the measurement lets workers in; anybody in the network can open some."""
_SECONDS, _KEPT_SECONDS = 24 * 3600, 600
"""The longest measurement, and how long the pods of an operator that was killed stay after their end."""
_LABEL = "shai.dev/load"
_NAME_LABELS = {"app.kubernetes.io/name": "shai-load", "app.kubernetes.io/part-of": "shai"}


@dataclass(frozen=True)
class LoadJobs:
    """Starts workers as Jobs."""

    cluster: Cluster
    image: str
    """The image of the pods, which has the package loadgen; empty: this operator starts no Jobs."""
    host: str
    """The address at which pods reach this operator."""
    namespace: str = NAMESPACE

    @contextlib.asynccontextmanager
    async def workers(self, count: int, member: str, place: Path) -> AsyncIterator[Joining]:
        """Run workers for a member's address until the end; MeasuringError when this operator starts none."""
        if not self.image:
            raise MeasuringError(
                "workers as Job: this operator was not told which image their pods have (--load-image); "
                "choose as: Process, or see deploy/benchmarks"
            )
        tls = place / "workers"
        tls.mkdir(mode=0o700)
        files = _identities(self.host, tls)
        family = socket.AF_INET6 if ip_address(self.host).version == 6 else socket.AF_INET  # noqa: PLR2004 - its name
        with socket.create_server((self.host, 0), family=family, backlog=_BACKLOG) as listener:
            port = int(listener.getsockname()[1])
            job = await self.cluster.create(self._job(f"shai-load-{secrets.token_hex(4)}", count, port))
            if job is None:
                raise MeasuringError("the Job of the workers exists already; measure again")
            try:
                await self.cluster.create(self._policy(job, member, port))
                await self.cluster.create(self._secret(job, files))
                await self.cluster.merge(reference(job), {"spec": {"suspend": False}})
                yield Joining(listener.fileno(), tls)
            finally:
                await self.cluster.delete(reference(job), job["metadata"]["uid"])

    def _job(self, name: str, count: int, port: int) -> dict[str, Any]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        container = {
            "name": "worker",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["python", "-m", "loadgen.driving.driver"],
            "args": ["--connect", f"{host}:{port}", "--tls", _MOUNTED],
            "env": [{"name": "HOME", "value": "/tmp"}, {"name": "TMPDIR", "value": "/tmp"}],  # noqa: S108 - the pod's
            "resources": {
                "requests": {"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "16Mi"},
                "limits": {"memory": "1Gi", "ephemeral-storage": "256Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                {"name": "tls", "mountPath": _MOUNTED, "readOnly": True},
                {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's
            ],
        }
        pod = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {"name": "tls", "secret": {"secretName": name, "defaultMode": 0o440}},
                {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
            ],
        }
        spec = {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            # A worker that ends takes its counts with it: the measurement fails, and no other one can replace it.
            "backoffLimit": 0,
            "activeDeadlineSeconds": _SECONDS,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {"metadata": {"labels": {**_NAME_LABELS, _LABEL: name}}, "spec": pod},
        }
        metadata = {"name": name, "namespace": self.namespace, "labels": _NAME_LABELS}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _policy(self, job: Mapping[str, Any], member: str, port: int) -> dict[str, Any]:
        """Let the pods reach the measurement and the member's front ends, and nothing else."""
        first, last = PORTS
        spec = {
            "podSelector": {"matchLabels": {_LABEL: job["metadata"]["name"]}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [
                {"to": [_block(self.host)], "ports": [{"protocol": "TCP", "port": port}]},
                {"to": [_block(member)], "ports": [{"protocol": "TCP", "port": first, "endPort": last}]},
            ],
        }
        return {**self._owned(job, "networking.k8s.io/v1", "NetworkPolicy"), "spec": spec}

    def _secret(self, job: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
        data = {file: base64.b64encode(text.encode()).decode() for file, text in files.items()}
        return {**self._owned(job, "v1", "Secret"), "type": "Opaque", "immutable": True, "data": data}

    def _owned(self, job: Mapping[str, Any], version: str, kind: str) -> dict[str, Any]:
        """Return the head of an object that goes with the Job."""
        metadata = {
            "name": job["metadata"]["name"],
            "namespace": self.namespace,
            "labels": _NAME_LABELS,
            "ownerReferences": [owner_reference(dict(job))],
        }
        return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _identities(host: str, tls: Path) -> dict[str, str]:
    """Write the files of the measurement's side; return those of the workers'."""
    root = authority.create()
    server, worker = authority.issue_server(root, host), authority.issue_client(root, "load worker")
    directories.write_private(tls / joining.AUTHORITY, root.certificate)
    directories.write_private(tls / joining.SERVER, server.key + server.certificate)
    return {joining.AUTHORITY: root.certificate, joining.WORKER: worker.key + worker.certificate}


def _block(address: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": f"{address}/{ip_address(address).max_prefixlen}"}}
