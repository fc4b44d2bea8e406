# SPDX-License-Identifier: BSD-2-Clause
"""A package has what the port lists and nothing else, in the format that pkg(8) reads."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from freebsd.packaging import __main__ as packaging
from freebsd.packaging import manifest, port, stage

if TYPE_CHECKING:
    from pathlib import Path

_TIME = 1_764_000_000
_PROGRAMS = {"shai": b"\x7fELF monitor", "libshai.so": b"\x7fELF library"}

# What pkg(8) takes for each key; other types end the installation, other keys are ignored.
_TYPES = {
    "name": str, "origin": str, "version": str, "comment": str, "maintainer": str, "www": str, "abi": str, "arch": str,
    "prefix": str, "flatsize": int, "licenselogic": str, "licenses": list, "desc": str, "categories": list,
    "annotations": dict, "messages": list, "files": dict, "config": list, "directories": dict,
}  # fmt: skip
_NEEDED = {"name", "origin", "version", "comment", "maintainer", "www", "prefix", "desc"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Make a directory with stand-ins for the programs."""
    directory = tmp_path / "built"
    directory.mkdir()
    for name, content in _PROGRAMS.items():
        (directory / name).write_bytes(content)
    return directory


def entries(package: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    plain = subprocess.run(["zstd", "-dc", str(package)], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        found = []
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            found.append((member, file.read() if file else b""))
        return found


@pytest.fixture
def unpacked(built: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Make the package for amd64 and unpack it."""
    return entries(packaging.package("x86_64", built, _TIME))


def manifests(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> tuple[dict[str, Any], dict[str, Any]]:
    return json.loads(unpacked[0][1]), json.loads(unpacked[1][1])


def test_manifests_come_first_then_files_then_directories(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    names = [entry.name for entry, _ in unpacked]
    assert names[:2] == ["+COMPACT_MANIFEST", "+MANIFEST"]
    kinds = [entry.isdir() for entry, _ in unpacked]
    assert kinds == sorted(kinds)
    assert names[2:] == [entry.name for entry, _ in unpacked if entry.name.startswith("/")]


def test_it_has_what_the_port_lists(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    listed = port.read(packaging.PORT).contents
    files = {entry.name for entry, _ in unpacked[2:] if entry.isreg()}
    of_framework = {"/usr/local/etc/rc.d/shai", "/usr/local/share/licenses/shai-0.1.0/LICENSE"}
    assert files == set(listed.files) | of_framework
    assert {entry.name for entry, _ in unpacked if entry.isdir()} == {one.path for one in listed.directories}
    assert all(entry.isreg() or entry.isdir() for entry, _ in unpacked)


def test_modes_and_owners(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    executable = {"shai", "libshai.so", "410.shai-audit"}
    for entry, _ in unpacked[2:]:
        runs = entry.isdir() or entry.name.rpartition("/")[2] in executable
        assert (entry.mode, entry.uname, entry.gname, entry.uid, entry.gid) == (
            0o755 if runs else 0o644, "root", "wheel", 0, 0,
        ), entry.name  # fmt: skip


def test_files_have_the_manifest_s_checksums_and_modes(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    _, full = manifests(unpacked)
    content = {entry.name: (entry, data) for entry, data in unpacked[2:] if entry.isreg()}
    assert full["files"].keys() == content.keys()
    for path, described in full["files"].items():
        entry, data = content[path]
        assert described == {
            "sum": "1$" + hashlib.sha256(data).hexdigest(), "uname": "root", "gname": "wheel",
            "perm": f"{entry.mode:04o}",
        }  # fmt: skip
    assert full["flatsize"] == sum(len(data) for _, data in content.values())
    assert full["config"] == ["/usr/local/etc/newsyslog.conf.d/shai.conf"]
    assert set(full["config"]) <= full["files"].keys()
    assert full["directories"].keys() == {entry.name for entry, _ in unpacked if entry.isdir()}


def test_keys_have_the_types_that_pkg_takes(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    compact, full = manifests(unpacked)
    assert {key: type(value) for key, value in full.items()} == _TYPES
    assert full.keys() - compact.keys() == {"files", "config", "directories"}
    assert compact == {key: full[key] for key in compact}
    assert all(full[key] for key in _NEEDED)
    assert all(isinstance(value, str) for value in full["annotations"].values())
    assert [message.keys() for message in full["messages"]] == [{"message", "type"}]


@pytest.mark.parametrize(
    ("machine", "abi", "arch"),
    [("x86_64", "FreeBSD:*:amd64", "freebsd:*:x86:64"), ("aarch64", "FreeBSD:*:aarch64", "freebsd:*:aarch64:64")],
)
def test_machines_have_their_names(built: Path, machine: str, abi: str, arch: str) -> None:
    compact, _ = manifests(entries(packaging.package(machine, built, _TIME)))
    assert (compact["abi"], compact["arch"]) == (abi, arch)
    assert compact["annotations"] == {"FreeBSD_version": "1400000"}


def test_scripts_name_the_prefix_and_pages_are_compressed(unpacked: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    content = {entry.name: data for entry, data in unpacked}
    for path in ("/usr/local/etc/rc.d/shai", "/usr/local/etc/periodic/daily/410.shai-audit"):
        assert b"%%" not in content[path]
        assert b"/usr/local/" in content[path]
    for page in ("man8/shai.8", "man5/shai-policy.5"):
        source = stage.ROOT / "monitor" / "man" / page.partition("/")[2]
        assert gzip.decompress(content[f"/usr/local/share/man/{page}.gz"]) == source.read_bytes()
    assert content["/usr/local/bin/shai"] == _PROGRAMS["shai"]


def test_the_same_build_makes_the_same_bytes(built: Path) -> None:
    first = packaging.package("x86_64", built, _TIME).read_bytes()
    for path in built.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    before = os.umask(0o077)
    try:
        again = packaging.package("x86_64", built, _TIME).read_bytes()
    finally:
        os.umask(before)
    assert again == first
    assert packaging.package("x86_64", built, _TIME + 1).read_bytes() != first


def test_a_file_that_is_not_listed_is_refused(built: Path, tmp_path: Path) -> None:
    of, directory = port.read(packaging.PORT), tmp_path / "stage"
    stage.install(of, built, directory)
    assert stage.check(of, directory)
    (directory / "usr/local/bin/other").write_text("")
    with pytest.raises(port.PortError, match=r"not listed: \['/usr/local/bin/other'\]"):
        stage.check(of, directory)
    (directory / "usr/local/bin/other").rename(directory / "usr/local/bin/shai")
    (directory / "usr/local/lib/shai/libshai.so").unlink()
    with pytest.raises(port.PortError, match=r"not installed: \['/usr/local/lib/shai/libshai.so'\]"):
        stage.check(of, directory)


def test_a_link_is_refused(built: Path, tmp_path: Path) -> None:
    """Its target could be outside, and it would be packaged as what it names."""
    of, directory = port.read(packaging.PORT), tmp_path / "stage"
    stage.install(of, built, directory)
    (directory / "usr/local/bin/shai").unlink()
    (directory / "usr/local/bin/shai").symlink_to("/etc/passwd")
    with pytest.raises(port.PortError, match="/usr/local/bin/shai: is not a regular file"):
        stage.check(of, directory)


def test_without_programs_there_is_no_package(built: Path) -> None:
    (built / "libshai.so").unlink()
    with pytest.raises(subprocess.CalledProcessError):
        packaging.package("x86_64", built, _TIME)
    assert not list(built.glob("*.pkg*"))


def test_texts_that_are_not_ascii_are_encoded() -> None:
    """pkg(8) decodes descriptions and paths: a per cent sign as it is would change them."""
    of = port.read(packaging.PORT)
    hostile = "100%25 \u202e\u1f600 \"'\n</script>" + "x" * 65536
    changed = port.Port(**(vars(of) | {"description": hostile}))
    encoded = manifest.compact(changed, "x86_64", [])["desc"]
    assert isinstance(encoded, str)
    assert encoded.isascii()
    assert encoded.startswith("100%2525 %E2%80%AE")
    assert encoded.endswith("\"'\n</script>" + "x" * 65536)
