# SPDX-License-Identifier: BSD-2-Clause
"""One run of ansible-playbook, through ansible-runner, and how its processes end.

Ansible's workers are sessions of their own, which no signal to a process group reaches; but
ansible-playbook ends them when it is sent SIGTERM. So it runs beneath a process that
ansible-runner may kill, whose death sends it that signal, and which is killed when the operator
dies: ``operator ← (SIGKILL) setsid ← (SIGTERM) ansible-playbook``.
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

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

COLLECTION = Path(__file__).parents[3] / "ansible"
"""The collection shai.pools."""
_PREFIX = ("setpriv", "--pdeathsig", "KILL", "setsid", "--wait", "setpriv", "--pdeathsig", "TERM")
_POLL_SECONDS = 1
_FORKS = "10"
_SETTINGS = "ansible.cfg"
"""An empty file, without which Ansible looks for one elsewhere."""
_LIST_SECONDS = 60.0


class End(Enum):
    """How a run ended."""

    SUCCEEDED = auto()
    FAILED = auto()
    CANCELLED = auto()
    TIMED_OUT = auto()


def prepare(directory: Path, playbook: str) -> Path:
    """Lay out a run's directory; returns where the playbook is, as a part of its collection."""
    home = directory / "collections" / "ansible_collections" / "shai"
    home.mkdir(parents=True)
    (home / "pools").symlink_to(COLLECTION)
    (directory / "connections").mkdir()
    (directory / _SETTINGS).touch()
    return home / "pools" / "playbooks" / playbook


def count_tasks(directory: Path, playbook: Path) -> int:
    """Count the tasks of a playbook, without those that are included while it runs."""
    listed = subprocess.run(
        [_program("ansible-playbook"), "--inventory", str(directory / "inventory.yml"), "--list-tasks", str(playbook)],
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
        return False  # no file of it is kept

    config = RunnerConfig(
        private_data_dir=str(directory),
        playbook=str(playbook),
        inventory=str(directory / "inventory.yml"),
        quiet=True,
    )
    config.prepare()
    # Settings that are given otherwise than in a file are dropped by prepare.
    config.pexpect_timeout, config.suppress_output_file = _POLL_SECONDS, True
    config.command = [*_PREFIX, *config.command]
    config.env = {**_added(config.env), **_environment(directory)}
    runner = Runner(config, event_handler=handle, cancel_callback=lambda: stop.is_set() or time.monotonic() > deadline)
    try:
        with suppress(pexpect.TIMEOUT):  # it was killed and takes its time to go
            runner.run()
    finally:
        _close_connections(directory)
    if stop.is_set():
        return End.CANCELLED
    if runner.canceled:
        return End.TIMED_OUT
    return End.SUCCEEDED if runner.rc == 0 else End.FAILED


def _environment(directory: Path) -> dict[str, str]:
    """Return the environment of Ansible: nothing of the operator's own, which may be secret, and no user's settings."""
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
    }


def _added(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what ansible-runner has added to the operator's environment, for its callback plugin."""
    return {name: value for name, value in environment.items() if os.environ.get(name) != value}


def _close_connections(directory: Path) -> None:
    """End the connections that ssh keeps open for the next task, and with them what still goes through them."""
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
