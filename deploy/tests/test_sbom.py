# SPDX-License-Identifier: BSD-2-Clause
"""The bills of materials (`make sbom`): valid, and with every package that is pinned."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from testing.cluster import ROOT

if TYPE_CHECKING:
    from pathlib import Path

GO_MODULES = ("monitor", "devcluster")
LISTS = ("python", *GO_MODULES)
_SECONDS = 1800
_VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = sys.stdin.read()
version = SchemaVersion.from_version(__import__("json").loads(text)["specVersion"])
error = JsonStrictValidator(version).validate_str(text)
sys.exit(str(error) if error else 0)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sbom")
    make(folder)
    return folder


def make(folder: Path) -> None:
    command = [str(ROOT / "scripts" / "sbom.sh"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr


def bill(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.cdx.json").read_text())
    return found


def components(folder: Path, name: str) -> set[tuple[str, str]]:
    return {(component["name"], component["version"]) for component in bill(folder, name)["components"]}


def complaint(text: str) -> str:
    """Validate against CycloneDX' schema; return what is wrong."""
    python = ROOT / "build" / "tools" / "sbom" / "bin" / "python"
    command = [str(python), "-c", _VALIDATE]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=_SECONDS)
    return done.stderr


@pytest.mark.parametrize("name", LISTS)
def test_it_is_valid(written: Path, name: str) -> None:
    assert complaint((written / f"{name}.cdx.json").read_text()) == ""


def test_one_that_is_not_valid_is_noticed(written: Path) -> None:
    assert complaint(json.dumps({**bill(written, "python"), "components": [{"name": "no type"}]}))


def test_every_pinned_python_package_is_in_it_with_its_hashes(written: Path) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = set(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", lock, re.MULTILINE))
    assert len(pinned) > 100
    assert components(written, "python") == pinned
    hashes = {
        entry["content"]
        for component in bill(written, "python")["components"]
        for reference in component["externalReferences"]
        for entry in reference.get("hashes", ())
    }
    assert hashes == set(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))


@pytest.mark.parametrize("module", GO_MODULES)
def test_every_pinned_go_module_is_in_it(written: Path, module: str) -> None:
    command = ["go", "-C", str(ROOT / module), "mod", "edit", "-json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    file = json.loads(done.stdout)
    replaced = {
        entry["Old"]["Path"]: (entry["New"]["Path"], entry["New"]["Version"]) for entry in file["Replace"] or ()
    }
    pinned = {replaced.get(one["Path"], (one["Path"], one["Version"])) for one in file["Require"]}
    assert pinned
    assert pinned <= components(written, module)


def test_the_same_sources_give_the_same_bytes(written: Path, tmp_path: Path) -> None:
    make(tmp_path)
    for name in LISTS:
        file = f"{name}.cdx.json"
        assert (tmp_path / file).read_bytes() == (written / file).read_bytes()
