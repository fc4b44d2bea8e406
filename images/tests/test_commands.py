# SPDX-License-Identifier: BSD-2-Clause
"""The command line: what it prints, its exit status, and errors that name the thing, the cause and the remedy."""

from __future__ import annotations

import json
import re
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from images import descriptions
from images.__main__ import main
from images.tests.conftest import openssh
from images.tests.mirror import Mirror, serving
from images.tests.test_checksums import Signer, made
from images.tests.test_seeds import unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "freebsd-14.5-amd64"
POOL = Path(__file__).parents[1] / "examples" / "pool.yaml"
FILE = "FreeBSD-14.5-RELEASE-amd64-BASIC-CLOUDINIT-ufs.raw.xz"
CONTENT = b"an image"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put copies in place of this folder's descriptions, as commands write some."""
    copies = tmp_path / "descriptions"
    copies.mkdir()
    for name in descriptions.names():
        shutil.copy(descriptions.FOLDER / f"{name}.yaml", copies)
    for function in (descriptions.names, descriptions.read, descriptions.record):
        assert function.__defaults__ is not None
        monkeypatch.setattr(function, "__defaults__", (*function.__defaults__[:-1], copies))
    return copies


@pytest.fixture
def keys(tmp_path: Path) -> list[str]:
    private, public = openssh()
    (tmp_path / "host_key").write_text(private)
    (tmp_path / "login.pub").write_text(public + "\n")
    return ["--authorized-keys", str(tmp_path / "login.pub"), "--host-key", str(tmp_path / "host_key")]


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    with made(tmp_path_factory, "signer") as signer:
        yield signer


def test_check_names_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert f"{NAME}: no checksum is recorded\n" in capsys.readouterr().out
    (folder / f"{NAME}.yaml").write_text("system: plan9\n")
    assert main(["check", "--output", "json"]) == 1
    shown = capsys.readouterr()
    assert f"{NAME}.yaml is not sound: " in shown.err
    assert json.loads(shown.out)["wrong"] == [NAME]


@pytest.mark.parametrize(("days", "warned"), [(-1, True), (0, False), (1, False)])
def test_check_warns_when_support_has_ended(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    days: int,
    warned: bool,  # noqa: FBT001
) -> None:
    end = (datetime.now(UTC).date() + timedelta(days=days)).isoformat()
    for file in folder.glob("*.yaml"):
        file.write_text(re.sub("(?m)^supportedUntil: .*$", "supportedUntil: 2999-01-01", file.read_text()))
    file = folder / f"{NAME}.yaml"
    file.write_text(file.read_text().replace("2999-01-01", end))
    assert main(["check", "--output", "json"]) == 0, "a warning is no failure: running pools go on"
    printed = capsys.readouterr()
    assert json.loads(printed.out)["unsupported"] == ([NAME] if warned else [])
    assert (f"image {NAME}: its support ended on {end}, so it gets no security updates" in printed.err) is warned


def test_list_shows_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    descriptions.record(NAME, "ab" * 64, "2026-11-23", "OpenPGP 0123", folder)
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert "abababababab…, OpenPGP 0123" in text
    assert main(["list", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == descriptions.names(folder)
    assert len(text.splitlines()) == len(rows) + 1


def test_render_writes_three_files_for_their_owner(keys: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "user-data").touch(0o644)
    (tmp_path / "out" / "meta-data").symlink_to(tmp_path / "elsewhere")
    assert main(["render", "--pool", str(POOL), "--machine", "3", *keys, "--into", str(tmp_path / "out")]) == 0
    files = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert set(files) == {"user-data", "meta-data", "network-config"}
    assert {path.lstat().st_mode for path in files.values()} == {stat.S_IFREG | 0o600}
    assert yaml.safe_load(files["meta-data"].read_text())["local-hostname"] == "example-vm-3"


def test_render_has_the_pools_own_keys(keys: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = yaml.safe_load(POOL.read_text())
    given = Path(keys[keys.index("--authorized-keys") + 1]).read_text().strip()
    for own in (f"{given} of-the-pool", f'command="sh" {given}'):
        pool["spec"]["virtualMachine"]["authorizedKeys"] = [own]
        (tmp_path / "pool.yaml").write_text(yaml.safe_dump(pool))
        status = main(["render", "--pool", str(tmp_path / "pool.yaml"), *keys, "--output", "json"])
        printed = capsys.readouterr()
        if own.startswith("command"):
            assert status == 1
            assert "without options in front" in printed.err
        else:
            user = yaml.safe_load(json.loads(printed.out)["user-data"])["users"][0]
            assert user["ssh_authorized_keys"] == [given, own]


def test_render_prints_when_there_is_no_directory(keys: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--pool", str(POOL), *keys, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["user-data"].startswith("#cloud-config\n")
    assert main(["render", "--pool", str(POOL), *keys]) == 0
    assert 'local-hostname: "example-vm-0"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Task\n", "has 0 objects of kind JailPool"),
        ("kind: JailPool\n---\nkind: JailPool\n", "has 2 objects of kind JailPool"),
        ("a: [", "is no YAML"),
        ("kind: JailPool\na: 2026-99-99\n", "is no YAML"),
        pytest.param("[" * 20_000, "is no YAML", id="deep"),
        ("kind: JailPool\nspec: {provider: local}\n", r"has no spec\.virtualMachine\.image"),
        ("kind: JailPool\nspec: {provider: bhyve, virtualMachine: {image: freebsd-9.0-amd64}}\n", "no description"),
        (
            "kind: JailPool\nspec: {provider: bhyve, virtualMachine: {image: ../../etc/passwd}}\n",
            "no name of a description",
        ),
        ("kind: JailPool\nspec: x\n", "no spec"),
    ],
)
def test_a_pool_that_cannot_be_rendered(
    keys: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "pool.yaml").write_text(text)
    assert main(["render", "--pool", str(tmp_path / "pool.yaml"), *keys]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(message, shown.err)


def test_a_file_that_cannot_be_read(keys: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--pool", str(tmp_path / "missing"), *keys]) == 1
    assert "missing cannot be read" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert main(["render", "--pool", str(tmp_path / "binary"), *keys]) == 1
    assert "is no text" in capsys.readouterr().err


def test_seed_makes_an_image(keys: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = tmp_path / "seed.iso"
    assert main(["seed", "--pool", str(POOL), *keys, str(seed)]) == 0
    assert capsys.readouterr().out == f"{seed}\n"
    assert set(unpacked(seed)) == {"user-data", "meta-data", "network-config"}


def test_record_then_fetch(folder: Path, signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, listed = tmp_path / "key.asc", tmp_path / "CHECKSUM.asc"
    key.write_bytes(signer.public())
    with serving(Mirror(CONTENT)) as mirror:
        assert main(["fetch", NAME, "--into", str(tmp_path / "cache"), "--mirror", mirror.url]) == 1
        assert "no checksum is recorded" in capsys.readouterr().err
        assert mirror.asked == []
        listed.write_bytes(signer.clear(f"SHA512 ({FILE}) = {mirror.sha512}\n"))
        assert main(["record", NAME, "--key", str(key), "--checksum-file", str(listed)]) == 0
        assert f"verified OpenPGP {signer.fingerprint()}" in capsys.readouterr().out
        fetch = ["fetch", NAME, "--into", str(tmp_path / "cache"), "--mirror", mirror.url, "--output", "json"]
        assert main(fetch) == 0
        shown = json.loads(capsys.readouterr().out)
        assert Path(shown["file"]).read_bytes() == CONTENT
        assert shown["checksum"] == mirror.sha512
        # A pool's checksum comes first.
        assert main([*fetch, "--checksum", "ab" * 64]) == 1
        assert "is pinned" in capsys.readouterr().err
    assert descriptions.read(NAME, folder)["checksum"]["value"] == mirror.sha512


def test_record_downloads_the_signed_file(
    folder: Path, signer: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key.asc").write_bytes(signer.public())
    asked = []

    def small(url: str) -> bytes:
        asked.append(url)
        return signer.clear(f"SHA512 ({FILE}) = {'ab' * 64}\n")

    monkeypatch.setattr("images.fetching.small", small)
    assert main(["record", NAME, "--key", str(tmp_path / "key.asc")]) == 0
    assert asked == [descriptions.read(NAME, folder)["published"]["url"]]


@pytest.mark.parametrize("changed", ["signature", "key", "file", "unsigned"])
def test_record_writes_nothing_that_is_not_verified(
    folder: Path, signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    key, listed = tmp_path / "key.asc", tmp_path / "CHECKSUM.asc"
    signed = signer.clear(f"SHA512 ({FILE if changed != 'file' else 'other'}) = {'ab' * 64}\n")
    listed.write_bytes(
        {
            "signature": signed.replace(b"ab" * 64, b"cd" * 64),
            "unsigned": f"SHA512 ({FILE}) = {'ab' * 64}\n".encode(),
        }.get(changed, signed)
    )
    key.write_bytes(b"" if changed == "key" else signer.public())
    before = (folder / f"{NAME}.yaml").read_bytes()
    assert main(["record", NAME, "--key", str(key), "--checksum-file", str(listed)]) == 1
    assert capsys.readouterr().err.startswith("images: ")
    assert (folder / f"{NAME}.yaml").read_bytes() == before


def test_a_project_that_signs_nothing_needs_a_person(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("")
    assert main(["record", "debian-13-amd64"]) == 1
    assert "vouch for a checksum yourself" in capsys.readouterr().err
    assert main(["record", "debian-13-amd64", "--key", str(tmp_path / "key")]) == 1
    assert "vouch for a checksum yourself" in capsys.readouterr().err
    assert (
        main(["record", "debian-13-amd64", "--sha512", "ab" * 64, "--vouched-by", "alice, from the mirror's TLS"]) == 0
    )
    recorded = descriptions.read("debian-13-amd64", folder)["checksum"]
    assert recorded["verifiedBy"] == "by hand: alice, from the mirror's TLS"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["record", NAME, "--sha512", "ab" * 64],
        ["record", NAME, "--vouched-by", "alice"],
        ["record", NAME, "--sha512", "ab" * 64, "--vouched-by", " "],
        ["record", NAME, "--sha512", "ab" * 64, "--vouched-by", "alice", "--key", "key"],
        ["record", NAME, "--key", "key", "--signature", "signature"],
        ["render"],
        ["fetch", NAME],
        ["list", "--output", "xml"],
    ],
)
@pytest.mark.usefixtures("folder")  # whatever is accepted by mistake changes a copy
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m images" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "list", "render", "seed", "record", "fetch"])
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "--output" in capsys.readouterr().out


def test_an_interrupt_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(descriptions, "names", interrupted)
    assert main(["list"]) == 130
