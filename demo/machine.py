# SPDX-License-Identifier: BSD-2-Clause
"""Checks whether this machine can run the demo, before anything is started; errors have the remedy."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class MachineError(LoadgenError):
    """The machine cannot run the demo; the text says why and what to do."""


def check_root() -> None:
    """Raise MachineError unless this process is root's, which the installation of a member requires."""
    if os.geteuid() != 0:
        raise MachineError(
            "the demo needs root: it installs a member of a pool on this machine, and removes it at the end; "
            'run `sudo env "PATH=$PATH" make demo`'
        )


def check_enforcement(shai: Path) -> None:
    """Raise MachineError with the failures of ``shai doctor`` when the kernel cannot confine tasks."""
    done = subprocess.run([shai, "doctor", "--output", "json"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    try:
        features = json.loads(done.stdout)["features"]
    except (ValueError, KeyError) as error:
        raise MachineError(f"`{shai} doctor` failed: {done.stderr.strip() or done.stdout.strip()}") from error
    missing = [
        f"{feature['name']} is {feature['found']}, needed: {feature['needed']}"
        for feature in features
        if not feature["present"]
    ]
    raise MachineError(
        f"this machine cannot confine tasks: {'; '.join(missing)}. Use a kernel that has it; `{shai} doctor` says more"
    )


def check_ports(addresses: Sequence[tuple[str, int]]) -> None:
    """Raise MachineError when another process listens on one of the addresses."""
    for host, port in addresses:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                raise MachineError(
                    f"the demo cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}; end the program that "
                    f"listens there (`ss -ltnp 'sport = :{port}'` names it)"
                ) from error
