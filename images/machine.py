# SPDX-License-Identifier: BSD-2-Clause
"""A pool's virtual machine when it boots for the first time: its name, address and keys, checked. Pure.

The role pool_vm and the operator's provider make the same names and addresses; their source is the JailPool's schema.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from images.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_MOST_NAMESERVERS = 3
"""As many as resolv.conf(5) may name."""
_MAKE_KEY = "make one with `ssh-keygen -q -t ed25519 -N '' -f FILE`"


@dataclass(frozen=True)
class HostKey:
    """An SSH host key, as the files that ssh-keygen writes."""

    private: str
    public: str


def host_key(private: str) -> HostKey:
    """Read the text of an Ed25519 private key that has no passphrase; ImageError if it is anything else."""
    try:
        key = load_ssh_private_key(private.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ImageError(
            f"the host key is no OpenSSH private key without a passphrase ({error}); {_MAKE_KEY}"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ImageError(f"the host key is not of type Ed25519; {_MAKE_KEY}")
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return HostKey(private if private.endswith("\n") else private + "\n", public)


def authorized_keys(text: str) -> list[str]:
    """Return the keys of an authorized_keys file; ImageError if a line is not a plain key, or if there is none.

    Options in front of a key (`command=`, `environment=`) are refused: all keys open the same door.
    """
    keys = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t\r")
        if not stripped or stripped.startswith("#"):
            continue
        keys.append(_plain_key(stripped, number))
    if not keys:
        raise ImageError("there is no public key, so nobody could log in; give a file with one key a line")
    return keys


def pool_keys(pool: Mapping[str, Any]) -> list[str]:
    """Return the keys of spec.virtualMachine.authorizedKeys; ImageError if one is not a plain key."""
    given = (_spec(pool).get("virtualMachine") or {}).get("authorizedKeys") or []
    if not isinstance(given, list) or not all(isinstance(key, str) for key in given):
        raise ImageError(f"spec.virtualMachine.authorizedKeys is {given!r}; give a list of public keys")
    return [_plain_key(key, number) for number, key in enumerate(given, 1)]


def _plain_key(line: str, number: int) -> str:
    kind = line.split(" ", 1)[0]
    if kind not in _KEY_TYPES:
        raise ImageError(
            f"line {number} of the public keys begins with {kind[:40]!r}; expected {', '.join(_KEY_TYPES)}, "
            "without options in front"
        )
    if not re.fullmatch(r"[\x20-\x7e]+", line):
        raise ImageError(
            f"line {number} of the public keys has characters other than printable ASCII; shorten its comment"
        )
    try:
        load_ssh_public_key(line.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ImageError(f"line {number} of the public keys is no {kind} key ({error}); copy it again") from error
    return line


def first_boot(pool: Mapping[str, Any], number: int, variant: str, keys: Sequence[str], key: HostKey) -> dict[str, Any]:
    """Return what the templates need for virtual machine ``number`` of a JailPool; ImageError names what is wrong."""
    name = machine_name(pool, number)
    return {
        "variant": variant,
        "instance_id": name,
        "hostname": name,
        "authorized_keys": list(keys),
        "host_key": {"private": key.private, "public": key.public},
        "network": {"mac": mac(name), **_network(_spec(pool), number)},
    }


def machine_name(pool: Mapping[str, Any], number: int) -> str:
    """Return the name of virtual machine ``number``; ImageError if the pool's name makes no host name."""
    metadata = pool.get("metadata")
    name = f"{metadata.get('name') if isinstance(metadata, dict) else None}-vm-{number}"
    if not _LABEL.fullmatch(name):
        raise ImageError(
            f"{name!r} is no name of a virtual machine: expected small letters, digits and hyphens, at most 63; "
            "rename the pool"
        )
    return name


def mac(name: str) -> str:
    """Return the Ethernet address of a virtual machine: locally administered, and always the same for its name."""
    digits = hashlib.sha256(name.encode()).hexdigest()
    return ":".join(("02", *(digits[position : position + 2] for position in range(0, 10, 2))))


def _spec(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = pool.get("spec")
    if pool.get("kind") != "JailPool" or not isinstance(spec, dict) or spec.get("provider") != "bhyve":
        raise ImageError("the file is no JailPool with provider bhyve; give the manifest of one")
    return spec


def _network(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    wanted = spec.get("network") or {}
    if not isinstance(wanted, dict):
        raise ImageError(f"spec.network is {wanted!r}; give the manifest of a JailPool with provider bhyve")
    machines = _range("machines", wanted.get("machines"))
    # The network that also has the members: without one, members are reached through the virtual machines.
    subnet = _range("subnet", wanted["subnet"]) if wanted.get("subnet") else machines
    gateway = _address("gateway", wanted["gateway"]) if wanted.get("gateway") else ""
    if gateway and ip_address(gateway) not in subnet:
        raise ImageError(f"spec.network.gateway {gateway} is not in {subnet}, so no virtual machine could reach it")
    nameservers = wanted.get("nameservers") or []
    if not isinstance(nameservers, list):
        raise ImageError(f"spec.network.nameservers is {nameservers!r}; give a list of addresses")
    if len(nameservers) > _MOST_NAMESERVERS:
        raise ImageError(f"spec.network.nameservers has {len(nameservers)}; at most {_MOST_NAMESERVERS} are used")
    address = _numbered(machines, number)
    if str(address) == gateway:
        raise ImageError(
            f"spec.network.gateway {gateway} is the address of virtual machine {number}; choose a higher one"
        )
    return {
        "address": f"{address}/{subnet.prefixlen}",
        "gateway": gateway,
        "nameservers": [_address("nameservers", nameserver) for nameserver in nameservers],
    }


def _range(field: str, written: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(_without_zone(written))
    except ValueError as error:
        raise ImageError(
            f"spec.network.{field} {written!r} is no range ({error}); expected a form such as 192.0.2.0/24"
        ) from error


def _address(field: str, address: object) -> str:
    try:
        return str(ip_address(_without_zone(address)))
    except ValueError as error:
        raise ImageError(
            f"spec.network.{field} has {address!r}, which is no address; expected one such as 192.0.2.1"
        ) from error


def _without_zone(address: object) -> str:
    """Make an address with a zone a bad one: what follows the percent sign may be any text."""
    return str(address).replace("%", "?")


def _numbered(machines: IPv4Network | IPv6Network, number: int) -> object:
    # The first and the last address of an IPv4 range, and the first of an IPv6 range, belong to no machine.
    first = 1 if machines.prefixlen < machines.max_prefixlen - 1 else 0
    room = machines.num_addresses - first - first * isinstance(machines, IPv4Network)
    if not 0 <= number < room:
        raise ImageError(
            f"spec.network.machines {machines} has addresses for {room} virtual machines, and {number} (from 0) gets "
            "none: choose a larger range"
        )
    return machines[first + number]
