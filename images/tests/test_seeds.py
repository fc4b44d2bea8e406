# SPDX-License-Identifier: BSD-2-Clause
"""Seeds are read back by another program, and the same files make the same bytes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from images import seeds
from images.errors import ImageError
from images.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

_VOLUME_ID = slice(16 * 2048 + 40, 16 * 2048 + 72)
"""Where ISO 9660 has a volume's label: in the first descriptor, which is the 17th block."""


def unpacked(seed: Path) -> dict[str, str]:
    listed = subprocess.run(["bsdtar", "-tf", seed], capture_output=True, text=True, check=True).stdout.split()
    return {
        name: subprocess.run(["bsdtar", "-xOf", seed, name], capture_output=True, text=True, check=True).stdout
        for name in listed
        if name != "."
    }


def test_a_seed_has_the_files_and_the_label(first_boot: dict[str, Any], tmp_path: Path) -> None:
    files = render(first_boot)
    seed = tmp_path / "seed.iso"
    seeds.write(files, seed)
    assert unpacked(seed) == files
    assert seed.read_bytes()[_VOLUME_ID].rstrip() == b"cidata"
    assert [path.name for path in tmp_path.iterdir()] == ["seed.iso"]


def test_the_same_files_make_the_same_bytes(
    first_boot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = render(first_boot)
    made = []
    for number, zone in enumerate(("UTC", "Pacific/Auckland")):
        monkeypatch.setenv("TZ", zone)
        seed = tmp_path / f"{number}.iso"
        seeds.write(dict(reversed(files.items())) if number else files, seed)
        made.append(seed.read_bytes())
    assert made[0] == made[1]


def test_only_root_reads_a_seed(first_boot: dict[str, Any], tmp_path: Path) -> None:
    seed = tmp_path / "seed.iso"
    seeds.write(render(first_boot), seed)
    assert seed.stat().st_mode & 0o777 == 0o600
    listed = subprocess.run(["bsdtar", "-tvf", seed], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        mode, _, owner, group = line.split()[:4]
        assert mode in {"-r--------", "dr-x------"}
        assert (owner, group) == ("0", "0")


def test_a_place_that_cannot_be_written_keeps_what_it_has(first_boot: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="choose another file"):
        seeds.write(render(first_boot), tmp_path / "missing" / "seed.iso")
    (tmp_path / "seed.iso").mkdir()
    with pytest.raises(ImageError, match="choose another file"):
        seeds.write(render(first_boot), tmp_path / "seed.iso")
    assert [path.name for path in tmp_path.iterdir()] == ["seed.iso"]


def test_a_program_that_fails_makes_no_seed(
    first_boot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(seeds, "LABEL", "x" * 64)
    with pytest.raises(ImageError, match="xorriso made no seed"):
        seeds.write(render(first_boot), tmp_path / "seed.iso")
    monkeypatch.setattr(subprocess, "run", missing)
    with pytest.raises(ImageError, match="install the package xorriso"):
        seeds.write(render(first_boot), tmp_path / "seed.iso")
    assert list(tmp_path.iterdir()) == []
