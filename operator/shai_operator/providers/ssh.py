# SPDX-License-Identifier: BSD-2-Clause
"""Connections by SSH, with a key and a known host key; also through a host to its virtual machines. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from shai_operator.providers.interface import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from shai_operator.providers.interface import Host, Login

KNOWN_HOSTS = "known_hosts"
"""Name of the file in a run's directory. Playbooks add the keys of virtual machines, which they read on their host."""
_CONNECT_SECONDS = 10
_KEY_FILE = "ssh.key"
_GUEST_USER = "root"
_HOST_KEY = re.compile(r"((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{16,}={0,3})(?: .*)?")
# Only characters that neither ssh reads as an option nor the shell that starts ssh reads as more than a word.
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def login(host: Host) -> Login:
    """Return a host's login; ConfigurationError when a part of it is not well-formed."""
    found = host.login
    if found is None:
        raise ConfigurationError(f"host {host.name}: it has no login; read its key from privateKeySecret")
    if not _ADDRESS.fullmatch(host.address):
        raise ConfigurationError(f"host {host.name}: address {host.address!r} is neither a name nor a number")
    if not _USER.fullmatch(found.user):
        raise ConfigurationError(f"host {host.name}: user {found.user!r} is not the name of a user")
    _host_key(host, found)
    return found


def files(host: Host, found: Login) -> Mapping[str, str]:
    """Return the files of a run's directory that `variables` refers to."""
    key = _host_key(host, found)
    return {
        _KEY_FILE: _as_ssh_reads_it(found.private_key),
        KNOWN_HOSTS: f"{alias(host.name)} {key[1]} {key[2]}\n",
    }


def _as_ssh_reads_it(key: str) -> str:
    """Return a private key with the line breaks that ssh wants; Secrets often lose the last one, or have others."""
    return "".join(f"{line}\n" for line in key.rstrip("\r\n").replace("\r\n", "\n").split("\n"))


def alias(name: str) -> str:
    """Return the name under which a key is known; it does not depend on the address and the port."""
    return f"shai-{name}"


def variables(host: Host, found: Login, directory: Path, python: str) -> Mapping[str, str]:
    """Return Ansible's variables for the connection to a host."""
    return {
        "ansible_host": host.address,
        "ansible_port": str(found.port),
        "ansible_user": found.user,
        **_common(directory, python, _arguments(directory, host.name)),
    }


def through(host: Host, found: Login, directory: Path, python: str, *, name: str, address: str) -> Mapping[str, str]:
    """Return Ansible's variables for the connection to a virtual machine, through its host.

    ssh does not pass its options on to a ProxyJump, so the first connection is spelt out.
    """
    first = _arguments(directory, host.name, shared=False)
    proxy = f"ssh {first} -i {directory / _KEY_FILE} -W [%h]:%p -p {found.port} -l {found.user} {host.address}"
    return {
        "ansible_host": address,
        "ansible_port": "22",
        "ansible_user": _GUEST_USER,
        **_common(directory, python, f'{_arguments(directory, name)} -o "ProxyCommand={proxy}"'),
    }


def public_key(found: Login) -> str:
    """Return the public half of a login's key, as in authorized_keys; ConfigurationError when it is no key for SSH."""
    content = _as_ssh_reads_it(found.private_key).encode()
    try:
        if b"OPENSSH" in content.partition(b"\n")[0]:
            key = serialization.load_ssh_private_key(content, None).public_key()
        else:
            key = serialization.load_pem_private_key(content, None).public_key()  # type: ignore[assignment]
        return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            "the key in privateKeySecret cannot be read: expected a private key for SSH without a passphrase, as "
            "ssh-keygen -N '' writes it; put one there, and its public half into the host's authorized_keys"
        ) from error


def _host_key(host: Host, found: Login) -> re.Match[str]:
    key = _HOST_KEY.fullmatch(found.host_key.strip())
    if key is None:
        raise ConfigurationError(
            f"host {host.name}: hostKey {found.host_key[:80]!r} is no public key: expected 'ssh-ed25519 AAAA…', "
            "the second and third column of what ssh-keyscan prints"
        )
    return key


def _common(directory: Path, python: str, arguments: str) -> dict[str, str]:
    return {
        "ansible_connection": "ssh",
        "ansible_ssh_private_key_file": str(directory / _KEY_FILE),
        "ansible_ssh_args": arguments,
        "ansible_ssh_timeout": str(_CONNECT_SECONDS),
        "ansible_ssh_retries": "0",
        "ansible_python_interpreter": python,
    }


def _arguments(directory: Path, name: str, *, shared: bool = True) -> str:
    options = {
        "BatchMode": "yes",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": directory / KNOWN_HOSTS,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": alias(name),
        "UpdateHostKeys": "no",
        "ForwardAgent": "no",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        **({"ControlMaster": "auto", "ControlPersist": "30s"} if shared else {"ConnectTimeout": _CONNECT_SECONDS}),
    }
    return " ".join(["-F /dev/null", *(f"-o {name}={value}" for name, value in options.items())])
