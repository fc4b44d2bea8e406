# SPDX-License-Identifier: BSD-2-Clause
"""Converts a JailPool's spec into the types of the providers."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    DataMode,
    Host,
    KeyValue,
    Login,
    MemberConfiguration,
    Pool,
)
from shai_operator.providers.local import LOCAL_HOST, local_host
from shai_operator.reconcile import addresses
from shai_operator.reconcile.objects import Reference, name, spec

if TYPE_CHECKING:
    from shai_operator.cluster.client import Cluster
    from shai_operator.providers.interface import Image
from shai_operator.reconcile.objects import Object

DEFAULT_DIRECTORY = "/var/lib/shai"
DEFAULT_MEMBERS = 8
DEFAULT_PERIOD = 10
SSH_PORT = 22


def pool(obj: Object) -> Pool:
    """Return the pool for placement; the hosts have no keys."""
    wanted = spec(obj)
    hosts = tuple(
        Host(host["name"], host["address"], max_members=int(host.get("maxMembers") or DEFAULT_MEMBERS))
        for host in wanted.get("hosts") or ()
    )
    return Pool(name(obj), addresses.of_members(obj), hosts, int(wanted.get("maxMembers") or DEFAULT_MEMBERS))


def directory(obj: Object) -> str:
    """Return the directory under which members are installed."""
    return str(spec(obj).get("directory") or DEFAULT_DIRECTORY)


def image(obj: Object) -> str:
    """Return the name of the image."""
    return str(spec(obj).get("image") or "default")


def period(obj: Object) -> float:
    """Return how often members are observed, in seconds."""
    return float((spec(obj).get("healing") or {}).get("periodSeconds") or DEFAULT_PERIOD)


def configuration(obj: Object, read: Image, installer: str) -> MemberConfiguration:
    """Return the configuration of members; ConfigurationError when no member can have it."""
    wanted = spec(obj)
    data, store = wanted.get("data"), wanted.get("keyValue") or {}
    managed = store.get("mode") == "Managed"
    return MemberConfiguration(
        directory=directory(obj),
        image=read,
        installer=installer,
        data=Data(data["source"], DataMode(data.get("mode") or "Copy")) if data else None,
        key_value=KeyValue(store.get("seed") or "") if managed else None,
        variables=tuple((variable["name"], variable.get("value") or "") for variable in wanted.get("variables") or ()),
        monitor_port=addresses.port(obj),
    )


async def reached(obj: Object, host: str, cluster: Cluster) -> Host:
    """Return a host of a pool with what is needed to reach it; ConfigurationError when it is no longer listed."""
    if host == LOCAL_HOST:
        return local_host()
    listed = next((candidate for candidate in pool(obj).hosts if candidate.name == host), None)
    if listed is None:
        raise ConfigurationError(f"host {host} is no longer in spec.hosts, but has members; list it again")
    return await login(obj, listed, cluster)


async def login(obj: Object, host: Host, cluster: Cluster) -> Host:
    """Add a host's key, which is in a Secret; ConfigurationError when there is none."""
    listed = next(candidate for candidate in spec(obj)["hosts"] if candidate["name"] == host.name)
    secret = listed["privateKeySecret"]
    ref = Reference("Secret", secret["namespace"], secret["name"])
    key = secret.get("key") or "ssh-privatekey"
    found = await cluster.get(ref)
    encoded = ((found or {}).get("data") or {}).get(key)
    if not encoded:
        problem = f"has no key {key}" if found else "does not exist"
        raise ConfigurationError(
            f"host {host.name}: {ref} {problem}; make it: kubectl -n {ref.namespace} create secret generic {ref.name} "
            f"--from-file={key}=FILE"
        )
    private = base64.b64decode(encoded).decode(errors="replace")
    port = int(listed.get("port") or SSH_PORT)
    return Host(host.name, host.address, Login(listed["user"], private, listed["hostKey"], port), host.max_members)
