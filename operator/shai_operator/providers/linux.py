# SPDX-License-Identifier: BSD-2-Clause
"""Provider ``linux``: members on Linux hosts that are reached by SSH, with a key and a known host key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shai_operator.providers.installation import PlaybookProvider
from shai_operator.providers.interface import ConfigurationError, Host, Login
from shai_operator.providers.inventory import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import Pool
    from shai_operator.providers.playbooks import Playbooks

PYTHON = "/usr/bin/python3"
"""The Python of hosts, for which Debian's package supervisor is installed."""
_CONNECT_SECONDS = 10
_KEY_FILE, _KNOWN_HOSTS = "ssh.key", "known_hosts"
_HOST_KEY = re.compile(r"((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{16,}={0,3})(?: .*)?")
# Only characters that neither ssh reads as an option nor the shell that starts ssh reads as more than a word.
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class LinuxProvider(PlaybookProvider):
    """Installs members on the hosts that the pool lists."""

    def __init__(self, playbooks: Playbooks, authority: Identity, *, python: str = PYTHON) -> None:
        super().__init__(playbooks, authority)
        self._python = python

    def hosts(self, pool: Pool) -> Sequence[Host]:
        """Return the pool's hosts."""
        return pool.hosts

    def connection(self, host: Host) -> Connection:
        """Return the connection to a host; ConfigurationError when a part of the login is not well-formed."""
        login = host.login
        if login is None:
            raise ConfigurationError(f"host {host.name}: it has no login; read its key from privateKeySecret")
        key = _checked(host, login)
        return Connection(
            lambda directory: _variables(host, login, directory),
            python=self._python,
            files={
                # ssh needs the line break at the end, which Secrets often lose.
                _KEY_FILE: login.private_key.rstrip("\n") + "\n",
                _KNOWN_HOSTS: f"{_alias(host)} {key[1]} {key[2]}\n",
            },
        )


def _checked(host: Host, login: Login) -> re.Match[str]:
    if not _ADDRESS.fullmatch(host.address):
        raise ConfigurationError(f"host {host.name}: address {host.address!r} is neither a name nor a number")
    if not _USER.fullmatch(login.user):
        raise ConfigurationError(f"host {host.name}: user {login.user!r} is not the name of a user")
    key = _HOST_KEY.fullmatch(login.host_key.strip())
    if key is None:
        raise ConfigurationError(
            f"host {host.name}: hostKey {login.host_key[:80]!r} is no public key: expected 'ssh-ed25519 AAAA…', "
            "the second and third column of what ssh-keyscan prints"
        )
    return key


def _alias(host: Host) -> str:
    """Return the name under which the key is known; it does not depend on the address and the port."""
    return f"shai-{host.name}"


def _variables(host: Host, login: Login, directory: Path) -> Mapping[str, str]:
    options = {
        "BatchMode": "yes",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": directory / _KNOWN_HOSTS,
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": _alias(host),
        "UpdateHostKeys": "no",
        "ForwardAgent": "no",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "ControlMaster": "auto",
        "ControlPersist": "30s",
    }
    return {
        "ansible_connection": "ssh",
        "ansible_host": host.address,
        "ansible_port": str(login.port),
        "ansible_user": login.user,
        "ansible_ssh_private_key_file": str(directory / _KEY_FILE),
        "ansible_ssh_args": " ".join(["-F /dev/null", *(f"-o {name}={value}" for name, value in options.items())]),
        "ansible_ssh_timeout": str(_CONNECT_SECONDS),
        "ansible_ssh_retries": "0",
        "ansible_python_interpreter": PYTHON,
    }
