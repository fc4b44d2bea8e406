# SPDX-License-Identifier: BSD-2-Clause
"""The image of a pool's members: for this machine, and for FreeBSD with packages for its virtual machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "image.sh"
SYSE = ("syse.jar", "page.html", "advertisements.txt", "topics.txt")
LINUX = ("bin/shai", "bin/shai-supervisor", "runtime/libshai.so", "syse/syse-frontend", "syse/syse-engine")
FREEBSD = ("shai", "libshai.so", "syse-frontend", "syse-engine", "shai-1.2.3.pkg", "shai-1.2.2.pkg")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a checkout in which everything is built; each file has its name."""
    made = [
        *(f"build/{name}" for name in (*LINUX, *(f"syse/{name}" for name in SYSE))),
        *(f"build/freebsd/x86_64/{name}" for name in FREEBSD),
    ]
    for name in (*made, "shai-kmod-1.pkg", "shai-kmod-2.pkg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    port = tmp_path / "freebsd/ports/sysutils/shai/Makefile"
    port.parent.mkdir(parents=True)
    port.write_text("PORTNAME=\tshai\nPORTVERSION=\t1.2.3\n")
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    return tmp_path


def image(checkout: Path, *words: str) -> dict[str, str]:
    """Make an image; return its files and what they are copies of."""
    subprocess.run([checkout / "scripts/image.sh", "out/image", *words], cwd=checkout, check=True)
    place = checkout / "out/image"
    return {str(file.relative_to(place)): file.read_text() for file in place.rglob("*") if file.is_file()}


def test_an_image_for_this_machine(checkout: Path) -> None:
    expected = {name: f"build/{name}" for name in (*LINUX, *(f"syse/{name}" for name in SYSE))}
    assert image(checkout) == expected


def test_an_image_for_freebsd_has_the_packages_of_one_version(checkout: Path) -> None:
    for module in ("shai-kmod-1.pkg", "shai-kmod-2.pkg"):
        made = image(checkout, "x86_64", module)
        assert made["bin/shai"] == "build/freebsd/x86_64/shai"
        assert made["runtime/libshai.so"] == "build/freebsd/x86_64/libshai.so"
        assert made["syse/syse-engine"] == "build/freebsd/x86_64/syse-engine"
        assert {name for name in made if name.endswith(".pkg")} == {"packages/shai-1.2.3.pkg", f"packages/{module}"}


@pytest.mark.parametrize("words", [("sparc64",), ("x86_64", "missing.pkg")])
def test_what_cannot_be_made_fails(checkout: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        image(checkout, *words)
