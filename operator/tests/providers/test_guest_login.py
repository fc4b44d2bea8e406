# SPDX-License-Identifier: BSD-2-Clause
"""The script that looks for passwords finds each way in, and nothing in a machine that has none."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers.process import COLLECTION
from tests.providers import sshd

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = COLLECTION / "roles" / "freebsd_guest" / "files" / "verify.sh"

SAFE = "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
ACCOUNTS = "# $FreeBSD$\nroot:*:0:0::0:0:Charlie &:/root:/bin/sh\ntoor:*LOCKED*:0:0::0:0::/root:\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sshd.make_directory()
    (tmp_path / "etc/ssh").mkdir(parents=True)
    (tmp_path / "var/cache/nuageinit").mkdir(parents=True)
    key = tmp_path / "etc/ssh/key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (tmp_path / "etc/ssh/sshd_config").write_text(f"HostKey {key}\n{SAFE}")
    (tmp_path / "etc/master.passwd").write_text(ACCOUNTS)
    return tmp_path


def verify(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", SCRIPT, root], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )


def test_a_machine_without_passwords_is_fine(root: Path) -> None:
    done = verify(root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PasswordAuthentication", "passwordauthentication no"),
        ("KbdInteractiveAuthentication", "kbdinteractiveauthentication no"),
        ("PermitRootLogin", "lets root in with a password"),
        ("PermitEmptyPasswords", "permitemptypasswords no"),
    ],
)
def test_a_password_login_is_found(root: Path, change: str, message: str) -> None:
    config = root / "etc/ssh/sshd_config"
    config.write_text(f"{change} yes\n{config.read_text()}")
    done = verify(root)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_password_login_of_root_alone_is_found(root: Path) -> None:
    with (root / "etc/ssh/sshd_config").open("a") as file:
        file.write("Match User root\n  PasswordAuthentication yes\n")
    assert "sshd has not 'passwordauthentication no'" in verify(root).stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("freebsd:*:1001:1001::0:0::/home/freebsd:/bin/sh", "default user is there: freebsd"),
        ("alice:$6$a$b:1001:1001::0:0::/home/alice:/bin/sh", "an empty one: alice"),
        ("alice::1001:1001::0:0::/home/alice:/bin/sh", "an empty one: alice"),
    ],
)
def test_an_account_with_a_password_is_found(root: Path, line: str, message: str) -> None:
    with (root / "etc/master.passwd").open("a") as file:
        file.write(line + "\n")
    done = verify(root)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_root_without_a_password_is_found(root: Path) -> None:
    (root / "etc/master.passwd").write_text("root::0:0::0:0:Charlie &:/root:/bin/sh\n")
    assert "an empty one: root\n" in verify(root).stderr


def test_a_machine_whose_accounts_cannot_be_read_fails(root: Path) -> None:
    (root / "etc/master.passwd").unlink()
    assert verify(root).returncode == 1
    (root / "etc/ssh/sshd_config").write_text("Nonsense yes\n")
    assert "does not accept" in verify(root).stderr


def test_the_role_runs_it(root: Path) -> None:
    """The role gives the script to a shell on its standard input."""
    done = subprocess.run(
        ["/bin/sh", "-s", "--", root], input=SCRIPT.read_text(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["user_data", "user-data"])
def test_a_copy_of_the_host_key_is_found(root: Path, name: str) -> None:
    (root / "var/cache/nuageinit" / name).write_text("x")
    assert "has the host key: remove it" in verify(root).stderr
