# SPDX-License-Identifier: BSD-2-Clause
"""The policies on pages can be parsed."""

import subprocess
from pathlib import Path

import pytest

from testing.documents import pages

SHAI = pages.ROOT / "build" / "bin" / "shai"


def shown() -> dict[str, str]:
    return {
        f"{name}:{block.line}": block.text
        for name in pages.names()
        for block in pages.load(name).blocks()
        if block.language == "shai"
    }


@pytest.mark.parametrize(("place", "text"), shown().items(), ids=shown().keys())
def test_a_policy_parses(place: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.pol"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([SHAI, "policy", "check", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"
