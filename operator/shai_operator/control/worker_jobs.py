# SPDX-License-Identifier: BSD-2-Clause
"""Jobs whose pods connect to this operator, and are confined to that.

Such a Job is in a namespace of its own: whoever may make Jobs in a namespace can read all its Secrets. It is made
suspended, and begins when the pods' certificate and their NetworkPolicy, which it owns, are there. Both sides get
certificates of an authority that exists for one Job, so a pod's is good for nothing else.

A Job has the operator's seal. Those that an operator has left because it was killed, or did not lead any more, are
deleted: all that are sealed and that this process does not run.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import secrets
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from shai_operator.cluster.client import ClusterError
from shai_operator.reconcile.objects import deleting, name, owner_reference, reference, uid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.seals import Seal

_USER = 65532
_KEPT_SECONDS = 600
"""How long the pods of an operator that was killed stay after their end, if no other one leads meanwhile."""
_SWEEP_SECONDS = 60.0
"""A request of an operator that did not wait for the answer can have its effect after the first sweep."""
_PART_OF = {"app.kubernetes.io/part-of": "shai"}

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workers:
    """The pods of a Job, and what they may reach."""

    kind: str
    """The name before the digits; also the label of the pods, by which a NetworkPolicy lets them in."""
    namespace: str
    label: str
    """The key of a label with the name of the Job."""
    count: int
    container: Mapping[str, Any]
    """Name, image, command, arguments, environment and resources; what confines it is added."""
    mounted: str
    """Where the files are."""
    files: Mapping[str, str]
    """The pods' certificate and what belongs to it, by name."""
    scratch: str
    """The size of /tmp."""
    reached: Sequence[tuple[str, int, int]]
    """Addresses that the pods connect to, each with the first and the last port."""
    seconds: int
    """The longest time that it takes."""
    failing: Mapping[str, Any]
    """The fields of the Job's spec about pods that fail."""


class WorkerJobs:
    """Runs such Jobs, and deletes those that an operator has left. ``seal`` marks those that operators made."""

    def __init__(self, cluster: Cluster, seal: Seal) -> None:
        self._cluster = cluster
        self._seal = seal
        self._own: set[str] = set()
        """The names of the Jobs that are being made, run or deleted here."""

    @contextlib.asynccontextmanager
    async def running(self, workers: Workers) -> AsyncIterator[Object]:
        """Run the pods until the end; yields the Job."""
        called = f"{workers.kind}-{secrets.token_hex(4)}"
        self._own.add(called)
        try:
            async with self._made(workers, called) as job:
                yield job
        finally:
            self._own.discard(called)

    @contextlib.asynccontextmanager
    async def _made(self, workers: Workers, called: str) -> AsyncIterator[Object]:
        body = _job(workers, called)
        job = await self._cluster.create({**body, "metadata": self._seal.put_on(_head(body))["metadata"]})
        if job is None:
            raise ClusterError("a Job of the same random name exists already")
        try:
            await self._cluster.create(_policy(workers, job))
            await self._cluster.create(_secret(workers, job))
            await self._cluster.merge(reference(job), {"spec": {"suspend": False}})
            yield job
        finally:
            await self._cluster.delete(reference(job), uid(job))

    async def sweep(self, space: str) -> None:
        """Delete the Jobs in a namespace that an operator has left, with all that they own; ClusterError."""
        for job in await self._cluster.list("Job", space, _PART_OF):
            if name(job) not in self._own and self._seal.is_on(_head(job)) and not deleting(job):
                _LOGGER.info("%s was left by an operator that has ended; deleting it", reference(job))
                await self._cluster.delete(reference(job), uid(job))

    async def keep_swept(self, spaces: Sequence[str]) -> None:
        """Sweep these namespaces, at once and then every minute, until cancelled."""
        told: dict[str, str] = {}
        while True:
            for space in spaces:
                try:
                    await self.sweep(space)
                    told.pop(space, None)
                except ClusterError as error:
                    if told.get(space) != str(error):
                        _LOGGER.warning("Jobs that an operator has left in namespace %s stay: %s", space, error)
                    told[space] = str(error)
            await asyncio.sleep(_SWEEP_SECONDS)


def _head(job: Object) -> dict[str, Any]:
    """Return what is sealed: the spec changes, with defaults and when the pods may begin."""
    return {"kind": job["kind"], "metadata": job["metadata"]}


def _names(workers: Workers) -> dict[str, str]:
    return {"app.kubernetes.io/name": workers.kind, **_PART_OF}


def _job(workers: Workers, called: str) -> dict[str, Any]:
    container = {
        **workers.container,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "env": [{"name": "HOME", "value": "/tmp"}, {"name": "TMPDIR", "value": "/tmp"}],  # noqa: S108 - the pod's
        "volumeMounts": [
            {"name": "tls", "mountPath": workers.mounted, "readOnly": True},
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
            {"name": "tls", "secret": {"secretName": called, "defaultMode": 0o440}},
            {"name": "tmp", "emptyDir": {"sizeLimit": workers.scratch}},
        ],
    }
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": workers.count,
        "parallelism": workers.count,
        "activeDeadlineSeconds": workers.seconds,
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "template": {"metadata": {"labels": {**_names(workers), workers.label: called}}, "spec": pod},
        **workers.failing,
    }
    metadata = {"name": called, "namespace": workers.namespace, "labels": _names(workers)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _policy(workers: Workers, job: Object) -> dict[str, Any]:
    """Let the pods reach what they have to, and nothing else."""
    spec = {
        "podSelector": {"matchLabels": {workers.label: job["metadata"]["name"]}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [],
        "egress": [
            {"to": [_block(address)], "ports": [_ports(first, last)]} for address, first, last in workers.reached
        ],
    }
    return {**_owned(workers, job, "networking.k8s.io/v1", "NetworkPolicy"), "spec": spec}


def _ports(first: int, last: int) -> dict[str, Any]:
    return {"protocol": "TCP", "port": first} | ({"endPort": last} if last > first else {})


def _secret(workers: Workers, job: Object) -> dict[str, Any]:
    data = {file: base64.b64encode(text.encode()).decode() for file, text in workers.files.items()}
    return {**_owned(workers, job, "v1", "Secret"), "type": "Opaque", "immutable": True, "data": data}


def _owned(workers: Workers, job: Object, version: str, kind: str) -> dict[str, Any]:
    """Return the head of an object that goes with the Job."""
    metadata = {
        "name": job["metadata"]["name"],
        "namespace": workers.namespace,
        "labels": _names(workers),
        "ownerReferences": [owner_reference(dict(job))],
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _block(address: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": f"{address}/{ip_address(address).max_prefixlen}"}}
