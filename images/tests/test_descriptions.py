# SPDX-License-Identifier: BSD-2-Clause
"""Descriptions of images: those of this folder are sound, and what is not sound is refused."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from images import descriptions, schema
from images.errors import ImageError, UnpinnedError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "freebsd-14.5-amd64"
SUM = "ab" * 64
OTHER = "cd" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(descriptions.FOLDER / f"{NAME}.yaml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", descriptions.names())
def test_every_description_is_sound(name: str) -> None:
    description = descriptions.read(name)
    parts = description["path"].rsplit("/", 1)[1]
    assert description["release"] in parts
    assert {"amd64": "amd64", "arm64": "arm64"}[description["architecture"]] in parts


def test_there_is_one_for_each_release_and_architecture() -> None:
    found = descriptions.names()
    for release in ("14.4", "14.5", "15.1"):
        for architecture in ("amd64", "arm64"):
            assert f"freebsd-{release}-{architecture}" in found
            assert f"freebsd-{release}-{architecture}-zfs" in found
    assert {"debian-12-amd64", "debian-13-arm64"} <= set(found)


@pytest.mark.parametrize("name", descriptions.names())
def test_a_recorded_checksum_says_who_verified_it(name: str) -> None:
    checksum = descriptions.read(name)["checksum"]
    assert ("value" in checksum) == ("verifiedBy" in checksum) == ("recordedAt" in checksum)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": "../../etc/passwd.xz"}, "path"),
        ({"path": "a/../b.xz"}, r"segment \. or \.\."),
        ({"path": "/etc/passwd.xz"}, "path"),
        ({"path": "a b.xz"}, "path"),
        ({"path": "a\nb.xz"}, "path"),
        ({"path": "a.raw"}, "compression"),
        ({"mirrors": ["http://download.freebsd.org"]}, "mirrors.0"),
        ({"mirrors": ["https://user:secret@example.org"]}, "mirrors.0"),
        ({"mirrors": []}, "mirrors"),
        ({"checksum": {"algorithm": "md5"}}, r"checksum\.algorithm"),
        ({"checksum": {"algorithm": "sha512", "value": SUM}}, "checksum"),
        ({"checksum": {"algorithm": "sha512", "value": "AB" * 64}}, r"checksum"),
        ({"architecture": "arm64"}, "named freebsd-14.5-amd64, but it describes freebsd-14.5-arm64"),
        ({"release": "14.4"}, "named freebsd-14.5-amd64, but it describes freebsd-14.4-amd64"),
        ({"filesystem": "ext4"}, "freebsd has no image on ext4"),
        ({"firstBoot": "cloud-init"}, "freebsd boots with nuageinit"),
        ({"format": "qcow2"}, "format"),
        ({"supportedUntil": "soon"}, "supportedUntil"),
        ({"script": "rm -rf /"}, "script"),
    ],
)
def test_a_description_that_is_not_sound_is_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    path = folder / f"{NAME}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(ImageError, match=message):
        descriptions.read(NAME, folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "a: [",
        "\x00",
        "checksum: !!python/object/apply:os.system [id]",
        "a: 0x_",
        pytest.param("[" * 20_000, id="deep"),
    ],
)
def test_a_file_that_is_no_description_is_refused(folder: Path, text: str) -> None:
    (folder / f"{NAME}.yaml").write_text(text)
    with pytest.raises(ImageError, match=NAME):
        descriptions.read(NAME, folder)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\nb", "x" * 64, "freebsd-99.0-amd64", "A"])
def test_a_name_without_a_description_is_refused(name: str) -> None:
    with pytest.raises(ImageError, match="choose one of debian-12-amd64, "):
        descriptions.read(name)


def test_an_image_without_a_checksum_is_not_used() -> None:
    description = descriptions.read(NAME)
    description["checksum"].pop("value", None)
    with pytest.raises(UnpinnedError, match=f"python -m images record {NAME}"):
        descriptions.pin(NAME, description)
    assert descriptions.pin(NAME, description, SUM) == SUM


def test_a_pools_checksum_comes_before_the_recorded_one() -> None:
    description = {**descriptions.read(NAME), "checksum": {"algorithm": "sha512", "value": SUM}}
    assert descriptions.pin(NAME, description) == SUM
    assert descriptions.pin(NAME, description, OTHER) == OTHER


@pytest.mark.parametrize("given", ["ab", SUM.upper(), SUM + "\n", "x" * 128])
def test_a_pools_checksum_has_to_be_one(given: str) -> None:
    with pytest.raises(ImageError, match="no SHA-512"):
        descriptions.pin(NAME, descriptions.read(NAME), given)


def test_a_mirror_takes_the_place_of_the_descriptions_own() -> None:
    description = descriptions.read(NAME)
    assert descriptions.url(description).startswith(
        "https://download.freebsd.org/releases/VM-IMAGES/14.5-RELEASE/amd64/"
    )
    assert descriptions.url(description, "http://mirror.example.org:8080/pub/").startswith(
        "http://mirror.example.org:8080/pub/releases/VM-IMAGES/"
    )


@pytest.mark.parametrize(
    "mirror",
    [
        "file:///etc",
        "https://",
        "mirror",
        "https://user:secret@example.org",
        "https://example.org/?a",
        "ftp://a",
        "http://[::1",
    ],
)
def test_a_mirror_has_to_be_the_url_of_a_server(mirror: str) -> None:
    with pytest.raises(ImageError, match="expected a URL such as"):
        descriptions.url(descriptions.read(NAME), mirror)


def test_a_recorded_checksum_is_read_again_and_the_rest_stays(folder: Path) -> None:
    path = folder / f"{NAME}.yaml"
    before = path.read_text()
    descriptions.record(NAME, SUM, "2026-11-23", "0123ABCD", folder)
    after = path.read_text()
    assert descriptions.pin(NAME, descriptions.read(NAME, folder)) == SUM
    assert descriptions.read(NAME, folder)["checksum"]["verifiedBy"] == "0123ABCD"
    assert "No checksum is recorded" not in after
    kept = re.compile(r"(?m)^(checksum:|# No checksum| ).*\n")
    assert kept.sub("", after).replace("published:\n", "") == kept.sub("", before).replace("published:\n", "")
    assert [entry.name for entry in folder.iterdir()] == [f"{NAME}.yaml"]
    descriptions.record(NAME, SUM, "2026-11-23", "0123ABCD", folder)
    assert path.read_text() == after


def test_another_checksum_is_not_recorded_over_one(folder: Path) -> None:
    descriptions.record(NAME, SUM, "2026-11-23", "0123ABCD", folder)
    before = (folder / f"{NAME}.yaml").read_text()
    with pytest.raises(ImageError, match="does not change; find out who changed it"):
        descriptions.record(NAME, OTHER, "2026-11-24", "0123ABCD", folder)
    assert (folder / f"{NAME}.yaml").read_text() == before


def test_only_a_checksum_is_recorded(folder: Path) -> None:
    with pytest.raises(ImageError, match="cannot be recorded"):
        descriptions.record(NAME, "ab", "2026-11-23", "0123ABCD", folder)
    with pytest.raises(ImageError, match="cannot be recorded"):
        descriptions.record(NAME, SUM, "2026-11-23", "a\nfirstBoot: cloud-init", folder)


def test_a_golden_image_names_its_base_and_contents() -> None:
    golden = {
        **descriptions.read("freebsd-14.5-amd64-zfs"),
        "golden": {
            "version": "1.0.0",
            "base": "freebsd-14.5-amd64-zfs",
            "baseChecksum": SUM,
            "contents": ["python3-3_3", "shai-0.3.0"],
            "snapshot": "golden-1.0.0",
        },
    }
    assert schema.problems("freebsd-14.5-amd64-golden", golden) == []
    del golden["golden"]["baseChecksum"]
    assert any("baseChecksum" in problem for problem in schema.problems("freebsd-14.5-amd64-golden", golden))
