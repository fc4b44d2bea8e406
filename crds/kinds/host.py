# SPDX-License-Identifier: BSD-2-Clause
"""The hosts of a JailPool: machines for its members."""

from __future__ import annotations

from crds.schema import name, number, record, rule, text, word

_MEMBERS_LIMIT = 64

HOST = record(
    "A machine for members, reached by SSH.",
    {
        "name": name("Its name in status and events; unique in the pool."),
        "address": text(
            "Host name or address for SSH.",
            longest=253,
            pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$",
        ),
        "port": number("Port of its SSH server.", least=1, most=65535, default=22),
        "user": text(
            "The user for SSH: root where systemd is used, and with provider bhyve; otherwise one that may write to "
            "spec.directory.",
            longest=32,
            pattern=r"^[a-z_][a-z0-9_-]*$",
            default="root",
        ),
        "privateKeySecret": record(
            "The Secret with the private key. The operator needs the right to read it: see the operations guide.",
            {
                "namespace": name("Its namespace."),
                "name": text("Its name.", longest=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
                "key": text(
                    "The key in the Secret.", longest=253, pattern=r"^[-._a-zA-Z0-9]+$", default="ssh-privatekey"
                ),
            },
            required=("namespace", "name"),
        ),
        "hostKey": text(
            "The host's public key, as in known_hosts without the host: algorithm and base64. Another key is refused.",
            longest=2048,
            rules=(
                rule(
                    "self.matches('^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+={0,2}$')",
                    "not a host key; expected a form such as ssh-ed25519 AAAA…, which ssh-keyscan prints after the "
                    "host",
                ),
            ),
        ),
        "maxMembers": number("The maximum number of members on it.", least=1, most=_MEMBERS_LIMIT, default=8),
        "state": word(
            "Active, or Gone: you have made sure that it is switched off or wiped, so that none of its virtual "
            "machines can run again. They are made anew on other hosts, and its data are lost. Provider bhyve only.",
            "Active",
            "Gone",
            default="Active",
        ),
    },
    required=("name", "address", "privateKeySecret", "hostKey"),
)
