# SPDX-License-Identifier: BSD-2-Clause
"""The operator's certificate authority, kept in a Secret, and its own certificate."""

from __future__ import annotations

import base64
import logging
import os
import ssl
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.control.backoff import Backoff
from shai_operator.providers import authority
from shai_operator.providers.authority import Identity
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from shai_operator.cluster.client import Cluster

SECRET = "shai-authority"  # noqa: S105 - the name of an object
_CERTIFICATE, _KEY = "tls.crt", "tls.key"
RENEW_BEFORE = timedelta(days=30)
_LOGGER = logging.getLogger(__name__)


async def await_loaded(cluster: Cluster, namespace: str, waiting: Callable[[str], None]) -> Identity:
    """Return the authority as `load` does; while that fails, wait, and call ``waiting`` with why."""
    backoff = Backoff()
    while True:
        try:
            return await load(cluster, namespace)
        except ClusterError as error:
            _LOGGER.warning("cannot begin yet: %s; trying again", error)
            waiting(str(error))
        await backoff.wait()


async def load(cluster: Cluster, namespace: str) -> Identity:
    """Return the authority of this cluster; create it when there is none.

    Two operators that start at the same time use the same one: only the first can create it.
    """
    ref = Reference("Secret", namespace, SECRET)
    found = await cluster.get(ref)
    if found is None:
        made = authority.create()
        found = await cluster.create(_secret(ref, made)) or await cluster.get(ref)
    if found is None:
        raise ClusterError(f"{ref} was deleted as soon as it was made; what else writes there?")
    data = found.get("data") or {}
    identity = Identity(_decode(data, _CERTIFICATE), _decode(data, _KEY))
    authority.check(identity)
    return identity


class _TLS(ABC):
    """One side of connections. `context` renews its certificate when necessary."""

    def __init__(self, root: Identity, name: str, directory: Path) -> None:
        self._root = root
        self._name = name
        self._directory = directory
        self._context: ssl.SSLContext | None = None
        self._ends = datetime.min.replace(tzinfo=UTC)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for new connections."""
        now = datetime.now(UTC)
        if self._context is None or now > self._ends - RENEW_BEFORE:
            self._context, self._ends = self._made(now)
        return self._context

    @abstractmethod
    def _made(self, now: datetime) -> tuple[ssl.SSLContext, datetime]:
        """Make a context with a new certificate; return when this ends, too."""


class ClientTLS(_TLS):
    """The operator's side of its connections to monitors; it accepts only members with a certificate of the authority.

    ``name`` is the operator's.
    """

    def _made(self, now: datetime) -> tuple[ssl.SSLContext, datetime]:
        client = authority.issue_client(self._root, self._name, now)
        context = ssl.create_default_context(cadata=self._root.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _load(context, client, self._directory / "client.pem")
        return context, client.ends


class ServerTLS(_TLS):
    """The admission server's side of its connections. ``name`` is the host."""

    def _made(self, now: datetime) -> tuple[ssl.SSLContext, datetime]:
        server = authority.issue_server(self._root, self._name, now)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        _load(context, server, self._directory / "server.pem")
        return context, server.ends


def _load(context: ssl.SSLContext, identity: Identity, path: Path) -> None:
    _write(path, identity)  # the ssl module reads keys only from files
    try:
        context.load_cert_chain(path)
    finally:
        path.unlink()


def _write(path: Path, identity: Identity) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(identity.key + identity.certificate)


def _secret(ref: Reference, identity: Identity) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "type": "kubernetes.io/tls",
        "data": {_CERTIFICATE: _encode(identity.certificate), _KEY: _encode(identity.key)},
    }


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decode(data: Mapping[str, str], key: str) -> str:
    return base64.b64decode(data.get(key, "")).decode(errors="replace")
