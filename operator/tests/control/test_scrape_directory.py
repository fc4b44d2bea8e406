# SPDX-License-Identifier: BSD-2-Clause
"""Files for Prometheus, in a directory whose owner is not to be trusted. These tests run as root."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shai_operator.control.scrape_directory import ScrapeDirectory
from shai_operator.control.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER, GROUP = 65534, 65533
OTHER = 65532
VICTIM = "do not touch"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "scrape"
    directory.mkdir(mode=0o755)
    os.chown(directory, OWNER, GROUP)
    return directory


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text(VICTIM)
    return file


def opened(place: Path) -> ScrapeDirectory:
    directory = ScrapeDirectory(place)
    directory.check()
    return directory


def about(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def test_files_belong_to_the_owner_and_only_he_reads_the_key(place: Path) -> None:
    directory = opened(place)
    directory.write("targets", "members.json", b"[]\n")
    directory.write("tls", "client.pem", b"certificate")
    directory.write("tls", "client.key", b"key")
    assert about(place / "targets") == (OWNER, GROUP, 0o755)
    assert about(place / "tls") == (OWNER, GROUP, 0o750)
    assert about(place / "targets" / "members.json") == (OWNER, GROUP, 0o644)
    assert about(place / "tls" / "client.key") == (OWNER, GROUP, 0o600)
    assert (place / "tls" / "client.key").read_bytes() == b"key"
    assert sorted(path.name for path in place.rglob("*")) == [
        "client.key", "client.pem", "members.json", "targets", "tls",
    ]  # fmt: skip


def test_a_directory_with_the_setgid_bit_is_for_its_group(place: Path) -> None:
    place.chmod(0o2750)
    directory = opened(place)
    directory.write("tls", "client.key", b"key")
    assert about(place / "tls" / "client.key") == (OWNER, GROUP, 0o640)
    assert about(place / "tls") == (OWNER, GROUP, 0o2750)


def test_folders_that_exist_keep_their_mode(place: Path) -> None:
    (place / "tls").mkdir(mode=0o700)
    os.chown(place / "tls", OWNER, OTHER)
    opened(place).write("tls", "ca.pem", b"")
    assert about(place / "tls") == (OWNER, OTHER, 0o700)


def test_what_has_not_changed_is_not_written_again(place: Path) -> None:
    directory, file = opened(place), place / "targets" / "members.json"
    directory.write("targets", "members.json", b"[1]")
    before = file.lstat()
    directory.write("targets", "members.json", b"[1]")
    assert file.lstat() == before
    directory.write("targets", "members.json", b"[2]")
    assert file.read_bytes() == b"[2]"
    assert file.lstat().st_ino != before.st_ino, "it is replaced, not rewritten"


@pytest.mark.parametrize("how", [Path.unlink, lambda file: file.write_bytes(b"[]")], ids=["removed", "changed"])
def test_what_the_owner_has_changed_is_written_again(place: Path, how: Callable[[Path], object]) -> None:
    directory, file = opened(place), place / "targets" / "members.json"
    directory.write("targets", "members.json", b"[1]")
    how(file)
    directory.write("targets", "members.json", b"[1]")
    assert file.read_bytes() == b"[1]"


@pytest.mark.parametrize("name", ["members.json", ".members.json.new"])
@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_is_replaced_and_not_followed(
    place: Path, victim: Path, name: str, link: Callable[[Path, Path], None]
) -> None:
    directory = opened(place)
    link(victim, place / "targets" / name)
    before = about(victim)
    directory.write("targets", "members.json", b"[1]")
    assert (place / "targets" / "members.json").read_bytes() == b"[1]"
    assert (victim.read_text(), about(victim)) == (VICTIM, before)


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_that_is_quicker_than_the_operator_is_an_error(
    place: Path, victim: Path, link: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner makes the link again, after the operator has removed it and before it makes the file."""
    directory, unlink, before = opened(place), os.unlink, about(victim)

    def removed(name: str, *, dir_fd: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            unlink(name, dir_fd=dir_fd)
        link(victim, place / "targets" / name)

    monkeypatch.setattr(os, "unlink", removed)
    with pytest.raises(FileExistsError):
        directory.write("targets", "members.json", b"[1]")
    assert victim.read_text() == VICTIM
    assert about(victim) == before


@pytest.mark.parametrize("name", ["members.json", ".members.json.new"])
def test_a_pipe_does_not_block(place: Path, name: str) -> None:
    directory = opened(place)
    os.mkfifo(place / "targets" / name)
    directory.write("targets", "members.json", b"[1]")
    assert (place / "targets" / "members.json").read_bytes() == b"[1]"


@pytest.mark.parametrize("name", ["members.json", ".members.json.new"])
def test_a_directory_in_place_of_a_file_is_an_error(place: Path, name: str) -> None:
    directory = opened(place)
    (place / "targets" / name).mkdir()
    with pytest.raises(OSError, match="directory"):
        directory.write("targets", "members.json", b"[1]")


def test_a_link_in_place_of_a_folder_is_an_error(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (place / "tls").symlink_to(elsewhere)
    with pytest.raises(SettingsError, match="cannot write"):
        opened(place)
    assert not list(elsewhere.iterdir())
    (place / "tls").unlink()
    directory = opened(place)
    (place / "tls").rmdir()
    (place / "tls").symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"tls|Not a directory"):
        directory.write("tls", "client.key", b"key")
    assert not list(elsewhere.iterdir())


def test_a_folder_of_another_user_gets_no_key(place: Path) -> None:
    (place / "tls").mkdir(mode=0o777)
    os.chown(place / "tls", OTHER, OTHER)
    with pytest.raises(SettingsError, match="another user"):
        opened(place)
    assert not list((place / "tls").iterdir())


def test_a_directory_that_changes_hands_gets_nothing_any_more(place: Path) -> None:
    directory = opened(place)
    os.chown(place, OTHER, OTHER)
    with pytest.raises(OSError, match="another owner"):
        directory.write("tls", "client.key", b"key")


def test_a_missing_directory_is_an_error_that_says_what_to_do(place: Path) -> None:
    with pytest.raises(SettingsError, match=r"make this directory, or give another --scrape"):
        opened(place / "missing")
    directory = opened(place)
    for folder in ("targets", "tls"):
        (place / folder).rmdir()
    place.rmdir()
    with pytest.raises(FileNotFoundError):
        directory.write("targets", "members.json", b"[]")
    place.mkdir()
    os.chown(place, OWNER, GROUP)
    directory.write("targets", "members.json", b"[]")
    assert (place / "targets" / "members.json").exists()


def test_an_ordinary_user_writes_only_into_a_directory_of_his_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    with pytest.raises(SettingsError, match=f"belongs to user {OWNER}"):
        opened(place)
