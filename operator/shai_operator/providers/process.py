# SPDX-License-Identifier: BSD-2-Clause
"""Runs ansible-playbook through ansible-runner, and ends its processes.

Ansible's workers have sessions of their own, which no signal to a process group reaches, but ansible-playbook ends them
on SIGTERM. It therefore runs below a process that ansible-runner may kill. The death of that process sends SIGTERM to
ansible-playbook; the process itself is killed when the operator dies: ``operator ← (SIGKILL) setsid ← (SIGTERM)
ansible-playbook``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect  # type: ignore[import-untyped]  # comes without types
from ansible_runner import Runner, RunnerConfig  # type: ignore[import-untyped]  # comes without types

from shai_operator.providers import compiled

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

COLLECTION = Path(__file__).parents[3] / "ansible"
"""The collection shai.pools."""
_PREFIX = ("setpriv", "--pdeathsig", "KILL", "setsid", "--wait", "setpriv", "--pdeathsig", "TERM")
_POLL_SECONDS = 1
_FORKS = "10"
_SETTINGS = "ansible.cfg"
"""An empty file; without it, Ansible searches for one elsewhere."""
_LIST_SECONDS = 60.0


class End(Enum):
    """The end of a run."""

    SUCCEEDED = auto()
    FAILED = auto()
    CANCELLED = auto()
    TIMED_OUT = auto()


def prepare(directory: Path, playbook: str) -> Path:
    """Fill a run's directory; return the path of the playbook in it, as a part of the collection."""
    home = directory / "collections" / "ansible_collections" / "shai"
    home.mkdir(parents=True)
    (home / "pools").symlink_to(COLLECTION)
    (directory / "connections").mkdir()
    (directory / _SETTINGS).touch()
    return home / "pools" / "playbooks" / playbook


def count_tasks(directory: Path, playbook: Path) -> int:
    """Count the tasks of a playbook, without those that are included at run time."""
    listed = subprocess.run(
        [_program("ansible-playbook"), "--inventory", str(directory / "inventory.json"), "--list-tasks", str(playbook)],
        env=_environment(directory),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIST_SECONDS,
        check=False,
    )
    return sum("TAGS: [" in line and not line.lstrip().startswith("play #") for line in listed.stdout.splitlines())


def run(
    directory: Path,
    playbook: Path,
    observe: Callable[[Mapping[str, object]], None],
    stop: threading.Event,
    time_limit_seconds: float,
) -> End:
    """Run a playbook until it ends, ``stop`` is set or its time is up."""
    deadline = time.monotonic() + time_limit_seconds

    def handle(event: Mapping[str, object]) -> bool:
        observe(event)
        return False  # ansible-runner keeps no file of the event

    config = RunnerConfig(
        private_data_dir=str(directory),
        playbook=str(playbook),
        inventory=str(directory / "inventory.json"),
        quiet=True,
    )
    config.prepare()
    # ansible-runner's prepare drops settings that are not in a file.
    config.pexpect_timeout, config.suppress_output_file = _POLL_SECONDS, True
    config.command = [*_PREFIX, *config.command]
    config.env = {**_added(config.env), **_environment(directory)}
    runner = Runner(config, event_handler=handle, cancel_callback=lambda: stop.is_set() or time.monotonic() > deadline)
    try:
        with suppress(pexpect.TIMEOUT):  # it was killed and needs some time to end
            runner.run()
    finally:
        _close_connections(directory)
    if stop.is_set():
        return End.CANCELLED
    if runner.canceled:
        return End.TIMED_OUT
    return End.SUCCEEDED if runner.rc == 0 else End.FAILED


def _environment(directory: Path) -> dict[str, str]:
    """Return Ansible's environment, without the operator's own, which may be secret, and without users' settings."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(directory),
        "LANG": "C.UTF-8",
        "ANSIBLE_CONFIG": str(directory / _SETTINGS),
        "ANSIBLE_HOME": str(directory / "ansible"),
        "ANSIBLE_COLLECTIONS_PATH": str(directory / "collections"),
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_FORKS": _FORKS,
        "ANSIBLE_NO_TARGET_SYSLOG": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(directory / "connections"),
        compiled.DIRECTORY: str(directory / "compiled"),
    }


def _added(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that ansible-runner has added to the environment, for its callback plugin."""
    return {name: value for name, value in environment.items() if os.environ.get(name) != value}


def _close_connections(directory: Path) -> None:
    """End the connections that ssh keeps open for later tasks, with the commands that still run through them."""
    for connection in (directory / "connections").iterdir():
        subprocess.run(
            ["ssh", "-o", f"ControlPath={connection}", "-O", "exit", "host"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIST_SECONDS,
            check=False,
        )


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)
