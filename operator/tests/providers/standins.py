# SPDX-License-Identifier: BSD-2-Clause
"""FreeBSD's programs for the roles' scripts, on Linux: stand-ins that record their calls and keep a small state.

They know what the scripts use and no more. What they cannot show was run on FreeBSD; see docs/providers.md.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROLES = COLLECTION / "roles"
_MOVED = ("/dev/vmm", "/dev/nmdm", "/var/spool/lock", "/usr/local/libexec/shai", "/var/run/", "/etc/rc.subr")
"""Paths of the scripts that a test has below its own directory."""

_IFCONFIG = """#!/usr/bin/env python3
import ipaddress, os, pathlib, sys
place = pathlib.Path(os.environ["WORLD"]) / "interfaces"
words = sys.argv[1:]
def show(file): print(file.name + ": flags=8843\\n" + file.read_text(), end="")
def fresh(kind):
    number = 0
    while (place / f"{kind}{number}").exists() or (place / f"{kind}{number}a").exists(): number += 1
    return f"{kind}{number}"
def mask(value):
    network = ipaddress.ip_interface(value)
    return f"prefixlen {network.network.prefixlen}" if network.version == 6 else f"netmask {int(network.netmask):#010x}"
def kind(file): return file.read_text().splitlines()[0].split()[-1]
if words[0] == "-l":
    print(*sorted(file.name for file in place.iterdir())); sys.exit()
if words[0] == "-g":
    print(*[file.name for file in sorted(place.iterdir()) if kind(file) == words[1]], sep="\\n"); sys.exit()
made = ""
if words[1:2] == ["create"]:
    made = fresh(words[0])
    for name in ([made + "a", made + "b"] if words[0] == "epair" else [made]):
        (place / name).write_text(f"\\tgroups: {words[0]}\\n")
    words = [made + ("a" if words[0] == "epair" else ""), *words[2:]]
file = place / words[0]
if not file.exists(): sys.exit(f"ifconfig: interface {words[0]} does not exist")
if len(words) == 1 and not made: show(file)
rest = words[1:]
while rest:
    word = rest.pop(0)
    if word in ("up", "alias"): continue
    if word == "destroy":
        file.unlink()
        if file.name.endswith("a"): (place / (file.name[:-1] + "b")).unlink(missing_ok=True)
        continue
    value = rest.pop(0)
    if word == "name": file = file.rename(place / value[:15])
    if word == "description": file.write_text(file.read_text() + f"\\tdescription: {value}\\n")
    if word == "group": file.write_text(file.read_text() + f"\\tgroups: {value}\\n")
    if word in ("inet", "inet6"):
        file.write_text(file.read_text() + f"\\t{word} {value.split('/')[0]} {mask(value)}\\n")
    if word == "addm":
        file.write_text(file.read_text() + f"\\tmember: {value} flags=143\\n")
        if os.environ.get("LOSES") == value: (place / value).write_text("\\tgroups: em\\n")
    if word == "deletem": file.write_text(file.read_text().replace(f"\\tmember: {value} flags=143\\n", ""))
if made: print(file.name)
"""

_PROGRAMS = {
    "ifconfig": _IFCONFIG,
    "lockf": """#!/bin/bash
options=()
while getopts skt: option; do [ $option = t ] && options=(--nonblock --conflict-exit-code 75); done
shift $((OPTIND - 1))
exec flock --close "${options[@]}" "$@"
""",
    "sleep": """#!/bin/sh
# Pauses are short; a time-out is as long as ever.
case $1 in [1-9][0-9]) [ "$1" -lt 60 ] || exec /bin/sleep "$1" ;; esac
exec /bin/sleep 0.01
""",
    "stty": "#!/bin/sh\n",
    "timeout": '#!/bin/sh\nshift\nexec "$@"\n',
    "sysctl": '#!/bin/sh\ncase $* in *shutdown*) echo 300 ;; *) [ -n "${IFADDRS-}" ] && echo "$IFADDRS" ;; esac\n',
    "stat": '#!/bin/sh\ncase $2 in %Lp) exec /usr/bin/stat -c %a "$3" ;; %z) exec /usr/bin/stat -c %s "$3" ;; esac\n',
}


@dataclass(frozen=True)
class World:
    """A directory with the stand-ins, first in PATH, and what they know."""

    place: Path

    def script(self, role: str, name: str) -> Path:
        """Return a role's script, with the system's paths moved below the test's directory."""
        text = (ROLES / role / "files" / name).read_text()
        for path in _MOVED:
            text = text.replace(path, f"{self.place}{path}")
        script = self.place / "usr/local/libexec/shai" / name
        script.write_text(text)
        return script

    def program(self, name: str, text: str) -> None:
        """Put a program into the path; it records its arguments."""
        first, _, rest = text.partition("\n")
        recorded = f'printf "%s\\n" "{name} $*" >>"$WORLD/log"\n' if "python" not in first else ""
        file = self.place / "bin" / name
        file.write_text(f"{first}\n{recorded}{rest}")
        file.chmod(0o755)

    def interface(self, name: str, *lines: str) -> Path:
        """Make a network interface."""
        file = self.place / "interfaces" / name
        file.write_text("".join(f"\t{line}\n" for line in (*lines[:1], *lines[1:])))
        return file

    def environment(self, **added: str) -> Mapping[str, str]:
        """Return the environment of a script."""
        return {"PATH": f"{self.place}/bin:{os.environ['PATH']}", "WORLD": str(self.place), **added}

    def run(self, script: Path, *words: str, text: str = "", **added: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            ["sh", script, *words],
            env=self.environment(**added),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def calls(self, program: str) -> list[str]:
        """Return the arguments with which a program was called, call by call."""
        log = self.place / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix(f"{program} ") for line in lines if line.startswith(f"{program} ")]


def world(place: Path) -> World:
    """Make the stand-ins that all scripts need."""
    for part in ("bin", "interfaces", "dev/vmm", "var/spool/lock", "var/run", "usr/local/libexec/shai", "etc"):
        (place / part).mkdir(parents=True)
    made = World(place)
    for name, text in _PROGRAMS.items():
        made.program(name, text)
    return made
