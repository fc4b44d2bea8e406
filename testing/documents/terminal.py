# SPDX-License-Identifier: BSD-2-Clause
"""A shell that executes a page's commands one after the other, like a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# Reads commands that end with NUL, and answers with their statuses; their output goes to the log.
_LOOP = r"""
shopt -s expand_aliases
while IFS= read -r -d '' command; do
  eval "$command" </dev/null >>"$0" 2>&1
  echo $?
done
"""
_LOOK_SECONDS = 0.1
_END_SECONDS = 1200.0


class Terminal:
    """A shell of its own. Not thread-safe."""

    def __init__(self, directory: Path, environment: Mapping[str, str], log: Path) -> None:
        """Start the shell in ``directory``; the output of its commands goes to ``log``."""
        log.touch()
        self._log = log
        self._read = 0
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", _LOOP, log],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._shell.stdin
        assert self._shell.stdout
        self._commands, self._statuses = self._shell.stdin, self._shell.stdout

    def type(self, command: str) -> None:
        """Start a command. The previous one has to have ended."""
        self._read = self._log.stat().st_size
        self._commands.write(command.encode() + b"\0")
        self._commands.flush()

    def status(self, until: Callable[[], bool], seconds: float) -> int | None:
        """Wait until the command has ended, or ``until`` holds; return its status, or None when it has not ended.

        Raise TimeoutError after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self._statuses], [], [], _LOOK_SECONDS)
            if ready:
                # If the command was an exit, the shell has ended.
                return int(os.read(self._statuses.fileno(), 16) or self._shell.wait())
            if until():
                return None
        raise TimeoutError

    def printed(self) -> str:
        """Return the output of the last command so far."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            return log.read().decode(errors="replace")

    def interrupt(self) -> None:
        """Press Ctrl-C and wait until the foreground process has ended; TimeoutError when it does not."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGINT)
        try:
            self._shell.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
