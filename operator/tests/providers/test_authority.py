# SPDX-License-Identifier: BSD-2-Clause
"""The authority's certificates, checked by openssl."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shai_operator.providers import authority
from shai_operator.providers.authority import AuthorityError, Identity

ONE, OTHER = authority.create(), authority.create()


def verify(tmp_path: Path, trusted: Identity, certificate: str, purpose: str, *options: str) -> bool:
    (tmp_path / "ca.pem").write_text(trusted.certificate)
    (tmp_path / "it.pem").write_text(certificate)
    command: list[str | Path] = [
        "openssl",
        "verify",
        "-x509_strict",
        *options,
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


@pytest.mark.parametrize(("hours", "good"), [(-1, True), (1, True), (-24 * 30, False), (24 * 120, False)])
def test_a_clock_that_is_an_hour_off_finds_a_new_certificate_valid(tmp_path: Path, hours: int, good: bool) -> None:  # noqa: FBT001
    there = datetime.now(UTC) + timedelta(hours=hours)
    client = authority.issue_client(ONE, "shai-operator")
    assert verify(tmp_path, ONE, client.certificate, "sslclient", "-attime", f"{there.timestamp():.0f}") is good


ROLES = Path(__file__).parents[3] / "ansible/roles"


@pytest.mark.parametrize("role", ["linux_member", "freebsd_member"])
def test_a_member_whose_clock_is_slow_takes_a_certificate_that_was_just_signed(tmp_path: Path, role: str) -> None:
    """With the command that the role has, which still refuses a certificate of another authority."""
    text = (ROLES / role / "tasks/certificate.yml").read_text()
    (words,) = re.findall(r"(openssl verify .*-purpose sslserver)( %s)?$", text, re.MULTILINE)
    command = re.sub(r"\{\{.*\}\}(/tls/authority.pem)?", str(tmp_path / "ca.pem"), words[0]).split()
    (tmp_path / "ca.pem").write_text(ONE.certificate)
    for signer, good in ((ONE, True), (OTHER, False)):
        of_tomorrow = authority.issue_server(signer, "127.0.0.1", datetime.now(UTC) + timedelta(days=2))
        (tmp_path / "monitor.pem").write_text(of_tomorrow.certificate)
        done = subprocess.run([*command, tmp_path / "monitor.pem"], capture_output=True, check=False, timeout=300)
        assert (done.returncode == 0) is good, (command, done.stderr)


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
