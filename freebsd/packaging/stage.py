# SPDX-License-Identifier: BSD-2-Clause
"""Installs a port into a directory, as the ports framework does before it makes a package."""

from __future__ import annotations

import gzip
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from freebsd.packaging.port import PortError

if TYPE_CHECKING:
    from freebsd.packaging.port import Port

ROOT = Path(__file__).resolve().parents[2]


def install(port: Port, built: Path, directory: Path) -> None:
    """Install beneath an empty directory; `built` has what `make freebsd` makes for a machine."""
    prefix = directory / port.prefix.lstrip("/")
    subprocess.run(
        ["make", "-s", "-C", str(ROOT / "freebsd"), "install", f"BUILT={built}", f"DESTDIR={directory}",
         f"PREFIX={port.prefix}"],
        check=True,
    )  # fmt: skip
    for name in port.rc_scripts:
        text = (port.folder / "files" / f"{name}.in").read_text().replace("%%PREFIX%%", port.prefix)
        _write(prefix / "etc" / "rc.d" / name, text.encode(), 0o755)
    licence = f"share/licenses/{port.name}-{port.version}/LICENSE"
    _write(prefix / licence, (ROOT / "LICENSE").read_bytes(), 0o644)
    for page in sorted((prefix / "share" / "man").glob("man*/*")):
        # Without a time, so that the same page makes the same file.
        _write(page.with_name(page.name + ".gz"), gzip.compress(page.read_bytes(), mtime=0), 0o644)
        page.unlink()


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def check(port: Port, directory: Path) -> list[str]:
    """Return the paths of the files that a package of the port has.

    Raises PortError when they are not those that the port lists and those that the framework adds.
    """
    added = {f"{port.prefix}/etc/rc.d/{name}" for name in port.rc_scripts}
    added.add(f"{port.prefix}/share/licenses/{port.name}-{port.version}/LICENSE")
    expected = set(port.contents.files) | added
    found = {f"/{path.relative_to(directory)}" for path in directory.rglob("*") if not path.is_dir()}
    for path in found:
        if not stat.S_ISREG((directory / path.lstrip("/")).lstat().st_mode):
            raise PortError(f"{path}: is not a regular file")
    if found != expected:
        raise PortError(
            f"{port.folder / 'pkg-plist'}: not installed: {sorted(expected - found)}; "
            f"not listed: {sorted(found - expected)}"
        )
    return sorted(found)
