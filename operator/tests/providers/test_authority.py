# SPDX-License-Identifier: BSD-2-Clause
"""The authority's certificates, checked by openssl."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers import authority
from shai_operator.providers.authority import AuthorityError, Identity

if TYPE_CHECKING:
    from pathlib import Path

ONE, OTHER = authority.create(), authority.create()


def verify(tmp_path: Path, trusted: Identity, certificate: str, purpose: str) -> bool:
    (tmp_path / "ca.pem").write_text(trusted.certificate)
    (tmp_path / "it.pem").write_text(certificate)
    command: list[str | Path] = [
        "openssl",
        "verify",
        "-x509_strict",
        "-purpose",
        purpose,
        "-CAfile",
        tmp_path / "ca.pem",
        tmp_path / "it.pem",
    ]
    return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0


def test_a_client_certificate_is_good_for_a_client_and_nothing_else(tmp_path: Path) -> None:
    client = authority.issue_client(ONE, "shai-operator")
    assert verify(tmp_path, ONE, client.certificate, "sslclient")
    assert not verify(tmp_path, ONE, client.certificate, "sslserver")
    assert not verify(tmp_path, OTHER, client.certificate, "sslclient")


def test_a_certificate_names_its_role(tmp_path: Path) -> None:
    client = authority.issue_client(ONE, "shai-metrics", role=authority.METRICS_ROLE)
    assert verify(tmp_path, ONE, client.certificate, "sslclient")
    shown = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName"],
        input=client.certificate, capture_output=True, check=True, timeout=300, text=True,
    ).stdout  # fmt: skip
    assert shown.split()[-1] == "URI:urn:shai:role:metrics"


def test_what_was_issued_cannot_issue() -> None:
    with pytest.raises(AuthorityError, match="not an authority's"):
        authority.issue_client(authority.issue_client(ONE, "shai-operator"), "another")


def test_lives() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    assert authority.create(now).ends == now + timedelta(days=3650)
    assert authority.issue_client(ONE, "operator", now).ends == now + timedelta(days=90)


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (Identity("", ""), "cannot be read"),
        (Identity(ONE.certificate, "-----BEGIN"), "cannot be read"),
        (Identity(ONE.certificate, OTHER.key), "not its certificate's"),
    ],
)
def test_what_is_no_authority(kept: Identity, says: str) -> None:
    with pytest.raises(AuthorityError, match=says):
        authority.check(kept)
    authority.check(ONE)


def test_an_identity_does_not_show_its_key() -> None:
    assert ONE.key not in repr(ONE)
    assert "PRIVATE" not in repr(ONE)
