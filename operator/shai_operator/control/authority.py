# SPDX-License-Identifier: BSD-2-Clause
"""The operator's certificate authority, kept in a Secret, and its own certificate."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from shai_operator.cluster.client import ClusterError
from shai_operator.providers import authority
from shai_operator.providers.authority import Identity
from shai_operator.reconcile.objects import Reference

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shai_operator.cluster.client import Cluster

SECRET = "shai-authority"  # noqa: S105 - the name of an object
_CERTIFICATE, _KEY = "tls.crt", "tls.key"
RENEW_BEFORE = timedelta(days=30)
_LOOK_SECONDS = 3600.0


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


class ClientTLS:
    """The operator's side of its connections to monitors. `context` renews the certificate when necessary."""

    def __init__(self, root: Identity, name: str, directory: Path) -> None:
        self._root = root
        self._name = name
        self._directory = directory
        self._context: ssl.SSLContext | None = None
        self._ends = datetime.min.replace(tzinfo=UTC)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for connections; it accepts only members with a certificate of the authority."""
        now = datetime.now(UTC)
        if self._context is None or now > self._ends - RENEW_BEFORE:
            client = authority.issue_client(self._root, self._name, now)
            context = ssl.create_default_context(cadata=self._root.certificate)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            path = self._directory / "client.pem"  # the ssl module reads keys only from files
            _write(path, client)
            try:
                context.load_cert_chain(path)
            finally:
                path.unlink()
            self._context, self._ends = context, client.ends
        return self._context


class ServerTLS:
    """The certificate of the admission server, in a file; `renew` keeps it valid."""

    def __init__(self, root: Identity, host: str, directory: Path) -> None:
        self.authority = root.certificate
        """PEM; the only authority that the API server accepts for the admission server."""
        self.file = directory / "server.pem"
        """The file with certificate and key."""
        self._root = root
        self._host = host
        self._ends = self._issue()

    async def renew(self) -> None:
        """Renew the certificate before it expires, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if datetime.now(UTC) > self._ends - RENEW_BEFORE:
                self._ends = self._issue()

    def _issue(self) -> datetime:
        server = authority.issue_server(self._root, self._host)
        new = self.file.with_suffix(".new")
        _write(new, server)
        new.replace(self.file)
        return server.ends


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
