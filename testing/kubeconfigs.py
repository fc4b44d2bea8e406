# SPDX-License-Identifier: BSD-2-Clause
"""Reads the connection from a kubeconfig, and writes kubeconfigs for other users."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping


def with_token(kubeconfig: Path, token: str, written: Path) -> Path:
    """Write the kubeconfig of a user with a token for the same cluster; return its path."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    written.touch(mode=0o600)
    written.write_text(yaml.safe_dump(config))
    return written


def tls(cluster: Mapping[str, str], user: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context that trusts the cluster's authority, with the user's certificate if there is no token."""
    context = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
    if "token" in user:
        return context
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory) / key for key in ("client-certificate", "client-key")]
        for path in files:
            path.touch(mode=0o600)
            path.write_text(_text(user, path.name))
        context.load_cert_chain(files[0], files[1])
    return context


def _text(entry: Mapping[str, str], key: str) -> str:
    """Return a value of a kubeconfig, which contains it or names a file."""
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"]).decode()
    return Path(entry[key]).read_text()
