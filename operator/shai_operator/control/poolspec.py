# SPDX-License-Identifier: BSD-2-Clause
"""Converts a JailPool's spec into the types of the providers."""

from __future__ import annotations

import base64
from types import MappingProxyType
from typing import TYPE_CHECKING

from shai_operator.providers import ssh
from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    DataMode,
    Grounds,
    Host,
    KeyValue,
    Login,
    MemberConfiguration,
    Pool,
)
from shai_operator.providers.local import LOCAL_HOST, local_host
from shai_operator.providers.machine_settings import MachineSettings
from shai_operator.reconcile import addresses, enforcement, machines, sources
from shai_operator.reconcile.conditions import FALSE, TRUE
from shai_operator.reconcile.objects import Reference, name, spec, status
from shai_operator.reconcile.surveys import VirtualMachine, machine_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.providers.interface import Image
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.surveys import HostSurvey

DEFAULT_DIRECTORY = "/var/lib/shai"
DEFAULT_MEMBERS = 8
DEFAULT_PERIOD = 10
_GONE = "Gone"
SSH_PORT = 22


def pool(
    obj: Object,
    surveys: Mapping[str, HostSurvey] = MappingProxyType({}),
    promised: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> Pool:
    """Return the pool for placement; the hosts have no keys. ``promised`` is what `neighbours.promised` returns."""
    wanted = spec(obj)
    known = {row["name"] for row in status(obj).get("hosts") or () if row.get("reached") in {TRUE, FALSE}}
    hosts = tuple(
        Host(
            host["name"],
            addresses.canonical(host["address"]),
            max_members=int(host.get("maxMembers") or DEFAULT_MEMBERS),
            gone=host.get("state") == _GONE,
            known=host["name"] in known,
            survey=surveys.get(host["name"]),
            promised=tuple(sorted(promised.get(addresses.canonical(host["address"]), {}).items())),
        )
        for host in wanted.get("hosts") or ()
    )
    most = int(wanted.get("maxMembers") or DEFAULT_MEMBERS)
    return Pool(name(obj), addresses.of_members(obj), hosts, most, machine_settings(obj))


def machine_settings(obj: Object) -> MachineSettings | None:
    """Return the settings of a pool's virtual machines; None when it has none."""
    if not machines.has_machines(obj):
        return None
    wanted, network = spec(obj)["virtualMachine"], spec(obj)["network"]
    ((kind, place),) = wanted["storage"].items()
    usual = MachineSettings("", 0, "", 0)
    return MachineSettings(
        addresses=network["machines"],
        jails=machines.jails(obj),
        members=addresses.of_members(obj),
        memory_mebibytes=machines.memory_mebibytes(obj),
        gateway=network.get("gateway") or "",
        cpus=int(wanted.get("cpus") or usual.cpus),
        disk_gibibytes=int(wanted.get("diskGibibytes") or usual.disk_gibibytes),
        storage=(kind, place),
        subnet=network.get("subnet") or "",
        nameservers=tuple(network.get("nameservers") or ()),
        uplink=network.get("uplink") or "",
        requires=enforcement.required(obj),
        checksum=wanted.get("checksum") or "",
        mirror=wanted.get("mirror") or "",
        authorized_keys=tuple(wanted.get("authorizedKeys") or ()),
    )


def existing_machines(obj: Object) -> MachineSettings:
    """Return the settings of a pool's virtual machines; ConfigurationError when it has none."""
    settings = machine_settings(obj)
    if settings is None:
        raise ConfigurationError(f"JailPool {name(obj)} has no virtual machines")
    return settings


def machine(obj: Object, ordinal: int, image: str = "") -> VirtualMachine | None:
    """Return the virtual machine of the member with this ordinal; None when the pool has none."""
    if not machines.has_machines(obj):
        return None
    number = ordinal // machines.jails(obj)
    return VirtualMachine(machine_name(name(obj), number), machines.machine_address(obj, number), image)


def grounds(obj: Object, condemned: Collection[str] = ()) -> Grounds:
    """Return where a pool's members are on their hosts; ``condemned`` are virtual machines to destroy."""
    return Grounds(name(obj), directory(obj), machine_settings(obj), frozenset(condemned))


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
        runtimes=tuple((runtime["name"], tuple(runtime["paths"])) for runtime in wanted.get("runtimes") or ()),
        sources=sources.listed(obj),
        monitor_port=addresses.port(obj),
        machines=machine_settings(obj),
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
    found_login = Login(listed["user"], private, listed["hostKey"], port)
    try:
        ssh.public_key(found_login)  # with a key that it cannot read, ssh would say that the host refuses it
    except ConfigurationError as error:
        raise ConfigurationError(f"host {host.name}: {ref}, key {key}: {error}") from error
    return Host(host.name, host.address, found_login, host.max_members)
