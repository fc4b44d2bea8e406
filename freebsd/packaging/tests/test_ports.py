# SPDX-License-Identifier: BSD-2-Clause
"""The ports follow the rules that portlint(1) checks, as far as they can be checked without a ports tree."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from freebsd.packaging import port, stage

if TYPE_CHECKING:
    from pathlib import Path

_PORTS = stage.ROOT / "freebsd" / "ports" / "sysutils"
_FOLDERS = [pytest.param(_PORTS / name, id=name) for name in ("shai", "shai-kmod")]
_SECTIONS = [
    ["PORTNAME", "PORTVERSION", "CATEGORIES", "MASTER_SITES", "PKGNAMESUFFIX", "DISTFILES"],
    ["MAINTAINER", "COMMENT", "WWW"],
    ["LICENSE", "LICENSE_FILE"],
    ["ONLY_FOR_ARCHS"],
    ["USES", "USE_RC_SUBR"],
]
"""The first sections of a port's Makefile, in order, with the order of their variables."""
_ASSIGNMENT = re.compile(r"([A-Z_]+)[?+]?=(.*)")


@pytest.mark.parametrize("folder", _FOLDERS)
def test_variables_are_in_order(folder: Path) -> None:
    sections = (folder / "Makefile").read_text().split("\n\n")
    for section, order in zip(sections, _SECTIONS, strict=False):
        names = [found[1] for line in section.splitlines() if (found := _ASSIGNMENT.match(line))]
        assert names, f"{section!r} has no variables; expected some of {order}"
        assert names == [name for name in order if name in names]
    assert sections[-1] == ".include <bsd.port.mk>\n"


@pytest.mark.parametrize("folder", _FOLDERS)
def test_values_and_commands_begin_with_tabs(folder: Path) -> None:
    text = (folder / "Makefile").read_text()
    for line in text.splitlines():
        assert line == line.rstrip(), f"{line!r} ends in white space"
        assert not line.startswith(" "), f"{line!r} begins with a space"
        if found := _ASSIGNMENT.match(line):
            assert found[2].startswith("\t"), f"{line!r}: a tab comes after ="
    assert "\n\n\n" not in text


@pytest.mark.parametrize("folder", _FOLDERS)
def test_texts_are_short_and_plain(folder: Path) -> None:
    of = port.read(folder)
    assert re.fullmatch(r"(?!An? |The )[A-Z0-9].{0,68}[^.]", of.comment)
    assert re.fullmatch(r"\S+@\S+", of.maintainer)
    description = of.description.splitlines()
    assert len(description) <= 24
    assert all(len(line) <= 80 for line in description + of.message.splitlines())
    assert (of.description + of.message).isascii()
    assert "%" not in of.description


@pytest.mark.parametrize("folder", _FOLDERS)
def test_lists_are_sorted_and_have_nothing_twice(folder: Path) -> None:
    paths = [line.rpartition(" ")[2] for line in (folder / "pkg-plist").read_text().splitlines()]
    relative = [path for path in paths if not path.startswith("/")]
    assert relative == sorted(set(relative))
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("folder", _FOLDERS)
def test_no_release_is_made_up(folder: Path) -> None:
    """There is no released file, so there is nothing whose checksum distinfo could have."""
    assert not (folder / "distinfo").exists()
    assert port.variables(folder, "DISTFILES", "MASTER_SITES") == ["", ""]


def test_both_have_the_version_of_the_collection() -> None:
    versions = {port.read(_PORTS / name).version for name in ("shai", "shai-kmod")}
    assert versions == {yaml.safe_load((stage.ROOT / "ansible" / "galaxy.yml").read_text())["version"]}


def test_the_program_of_a_package_says_its_version() -> None:
    made = subprocess.run(
        ["make", "-n", "-B", "-o", "setup", "build/freebsd/x86_64/shai"],
        cwd=stage.ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    setting = "-X shai.dev/monitor/internal/edition.release="
    assert f"{setting}{port.read(_PORTS / 'shai').version}'" in made.stdout
    assert f"{setting}${{PORTVERSION}}" in (_PORTS / "shai" / "Makefile").read_text(), "the ports tree builds the same"
    assert "\nvar release = " in (stage.ROOT / "monitor/internal/edition/edition.go").read_text()


def test_names_and_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "w --no-print-directory")  # as make freebsd-package has it
    origins = {port.read(_PORTS / name).origin for name in ("shai", "shai-kmod")}
    assert origins == {"sysutils/shai", "sysutils/shai-kmod"}


def test_the_module_is_built_from_all_its_manual_pages() -> None:
    """The framework's names of compressed pages, for those that the module's Makefile installs."""
    pages = {f"share/man/man{page.suffix[1]}/{page.name}.gz" for page in (stage.ROOT / "kernel" / "man").iterdir()}
    listed = set((_PORTS / "shai-kmod" / "pkg-plist").read_text().splitlines())
    assert listed == pages | {"/%%KMODDIR%%/shai.ko"}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make sources with one configuration, and a stand-in for config(8), which works in its folder only."""
    configurations = tmp_path / "sys" / "arm64" / "conf"
    configurations.mkdir(parents=True)
    (configurations / "GENERIC").touch()
    program = tmp_path / "bin" / "config"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ntest -f "$3" && echo config "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def of_the_module(sources: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the port of the module with variables and targets."""
    return subprocess.run(
        [*port.MAKE, f"SRC_BASE={sources}", "ARCH=aarch64", "WRKDIR=/build", *words],
        cwd=_PORTS / "shai-kmod", env=port.environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_module_is_built_with_options_of_the_kernel(sources: Path) -> None:
    """Its Makefile refuses to build without them: accounting would vanish."""
    made = of_the_module(sources, "pre-build")
    assert (made.returncode, made.stdout.splitlines()[-1]) == (0, "config -d /build/options GENERIC")
    assert "KERNBUILDDIR=/build/options" in of_the_module(sources, "-V", "${MAKE_ARGS}").stdout.split()


def test_the_module_is_built_with_a_build_of_the_kernel(sources: Path) -> None:
    named = "KERNBUILDDIR=/obj/WEB"
    assert named in of_the_module(sources, named, "-V", "${MAKE_ARGS}").stdout.split()
    assert "don't know how to make pre-build" in of_the_module(sources, named, "pre-build").stderr


def test_a_kernel_without_a_configuration_is_named(sources: Path) -> None:
    made = of_the_module(sources, "KERNCONF=WEB", "pre-build")
    assert made.returncode != 0
    assert f"{sources}/sys/arm64/conf/WEB: there is no such configuration; name that of" in made.stdout


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("@sample etc/x.conf.sample", "'@sample etc/x.conf.sample' is not known"),
        ("@dir(root) /var/db/x", "is not known"),
        ("lib/../../../etc/passwd", "cannot be named with .."),
        ("@dir /var/../etc", "cannot be named with .."),
    ],
)
def test_lines_that_are_not_understood_are_refused(tmp_path: Path, line: str, error: str) -> None:
    (tmp_path / "pkg-plist").write_text(f"bin/x\n{line}\n")
    with pytest.raises(port.PortError, match=re.escape(error)):
        port.listed(tmp_path / "pkg-plist", "/usr/local")


def test_a_list_is_read(tmp_path: Path) -> None:
    (tmp_path / "pkg-plist").write_text(
        "bin/x\n@config etc/x.conf\n/boot/y\n@dir lib/x\n@dir(operator,bin,750) /var/x\n"
    )
    assert port.listed(tmp_path / "pkg-plist", "/opt") == port.Contents(
        files=("/boot/y", "/opt/bin/x", "/opt/etc/x.conf"),
        configuration=("/opt/etc/x.conf",),
        directories=(port.Directory("/opt/lib/x", "root", "wheel", 0o755),
                     port.Directory("/var/x", "operator", "bin", 0o750)),
    )  # fmt: skip
