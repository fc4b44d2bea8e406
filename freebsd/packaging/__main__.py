# SPDX-License-Identifier: BSD-2-Clause
"""Makes a FreeBSD package of Shai from what `make freebsd` has built.

The time of its files is SOURCE_DATE_EPOCH, in seconds since 1970, so that the same build makes the same package.
"""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from freebsd.packaging import archive, manifest, port, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT = stage.ROOT / "freebsd" / "ports" / "sysutils" / "shai"


def package(machine: str, built: Path, time: int) -> Path:
    """Make the package for a machine beside what `make freebsd` has built for it; return its path.

    Raises PortError, and CalledProcessError when a program fails that was needed.
    """
    of = port.read(PORT)
    with tempfile.TemporaryDirectory(prefix="shai-package-") as name:
        directory = Path(name)
        stage.install(of, built, directory)
        files = []
        for path in stage.check(of, directory):
            staged = directory / path.lstrip("/")
            files.append(manifest.File(path, staged.read_bytes(), stat.S_IMODE(staged.stat().st_mode)))
    made = built / f"{of.name}-{of.version}.pkg"
    archive.write(of, machine, files, time, made)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a package and print its path."""
    parser = argparse.ArgumentParser(
        prog="python -m freebsd.packaging", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machine", choices=("x86_64", "aarch64"), help="the machine that the package is for")
    options = parser.parse_args(arguments)
    try:
        built = stage.ROOT / "build" / "freebsd" / options.machine
        made = package(options.machine, built, int(os.environ["SOURCE_DATE_EPOCH"]))
    except KeyError:
        print("packaging: SOURCE_DATE_EPOCH is not set; make freebsd-package sets it", file=sys.stderr)
        return 1
    except (port.PortError, subprocess.CalledProcessError, OSError, ValueError) as error:
        print(f"packaging: {error}", file=sys.stderr)
        return 1
    print(made.relative_to(stage.ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
