# SPDX-License-Identifier: BSD-2-Clause
"""The interpreter of Ansible's modules on this machine; test_local.py has whole playbooks that use it."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from shai_operator.providers import compiled

MODULE = """
import sys
sys.path.insert(0, {archive!r})
import shared
if __name__ == "__main__":
    print(shared.WORD, *sys.argv[1:])
"""
"""Imports from an archive, as Ansible's modules do."""


def ran(place: Path, *arguments: str, word: str = "good") -> subprocess.CompletedProcess[str]:
    archive = place / "archive.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("shared.py", f"WORD = {word!r}\n")
    module = MODULE.format(archive=str(archive))
    (place / "module.py").write_text(module)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [compiled.__file__, *arguments],
        env={"PATH": path, compiled.DIRECTORY: str(place / "kept")},
        input="" if arguments else module, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_module_runs_as_it_would_have(tmp_path: Path) -> None:
    """From its standard input, or from a file."""
    for arguments, said in (((), "good\n"), ((str(tmp_path / "module.py"), "-x"), "good -x\n")):
        done = ran(tmp_path, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_a_module_is_compiled_by_its_own_rules(tmp_path: Path) -> None:
    """Not by those of the interpreter's file, for which annotations are texts."""
    (tmp_path / "annotated.py").write_text("def f(x: int): pass\nprint(f.__annotations__['x'] is int)\n")
    assert ran(tmp_path, str(tmp_path / "annotated.py")).stdout == "True\n"


def test_what_was_compiled_is_kept_where_only_its_user_writes(tmp_path: Path) -> None:
    ran(tmp_path)
    (file,) = (tmp_path / "kept").iterdir()
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]
    file.write_bytes(marshal.dumps(compile("WORD = 'kept'", "shared.py", "exec")))
    assert ran(tmp_path).stdout == "kept\n"


def test_another_library_is_compiled_anew(tmp_path: Path) -> None:
    ran(tmp_path)
    assert ran(tmp_path, word="other").stdout == "other\n"
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_module_that_cannot_be_compiled_fails_as_it_would_have(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def\n")
    done = ran(tmp_path, str(tmp_path / "broken.py"))
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
