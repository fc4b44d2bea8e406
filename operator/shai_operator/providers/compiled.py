#!/usr/bin/env -S python3 -P
# SPDX-License-Identifier: BSD-2-Clause
"""The interpreter of Ansible's modules on this machine: Python that keeps the code it has compiled.

Ansible runs it in place of Python, as a program without arguments, with the module as its standard input or as the file
that the only argument names.

A module comes as an archive with the library that all modules share. Python keeps no compiled code of archives, and
compiling this library anew was half of what a module cost. So it is kept in a directory that the environment names and
that belongs to one run: code in it is executed, and only who may write to the run's directory may write there.
"""

from __future__ import annotations

import builtins
import hashlib
import marshal
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

DIRECTORY = "SHAI_COMPILED_MODULES"
"""The variable of the environment that names the directory."""
_compile = builtins.compile


def keep(directory: Path) -> None:
    """Have compiled what is imported from archives, unless the directory has its code; then keep it there."""
    directory.mkdir(mode=0o700, exist_ok=True)

    def compile_once(source: Any, filename: Any, mode: str, *rest: Any, **options: Any) -> Any:
        # This is how zipimport calls it. The rest of the code comes from elsewhere, or depends on the caller.
        if isinstance(source, bytes) and mode == "exec" and not rest and options == {"dont_inherit": True}:
            return _kept(directory, source, filename)
        return _compile(source, filename, mode, *rest, **options)

    builtins.compile = compile_once


def _kept(directory: Path, source: bytes, filename: str) -> CodeType:
    file = directory / hashlib.sha256(source).hexdigest()
    try:
        code: CodeType = marshal.loads(file.read_bytes())  # noqa: S302 - see above: nobody else writes there
    except FileNotFoundError:
        code = _compile(source, filename, "exec", dont_inherit=True)
        descriptor, name = tempfile.mkstemp(dir=directory)
        with os.fdopen(descriptor, "wb") as made:
            made.write(marshal.dumps(code))
        Path(name).rename(file)  # at once: other modules run at the same time
    return code


def main() -> None:
    """Run a module as Python would have, as the program's main module."""
    keep(Path(os.environ[DIRECTORY]))
    arguments = sys.argv[1:]
    source = Path(arguments[0]).read_bytes() if arguments else sys.stdin.buffer.read()
    sys.argv = arguments or ["-"]
    code = _compile(source, sys.argv[0], "exec", dont_inherit=True)  # not this file's __future__
    exec(code, sys.modules["__main__"].__dict__)  # noqa: S102 - Ansible's own code


if __name__ == "__main__":
    main()
