# SPDX-License-Identifier: BSD-2-Clause
"""Starts the processes of a run and ensures that none of them outlives it.

Three mechanisms, each for the failures of the previous one. First, every process has its own group and is ended in
reverse order. Second, this process is a subreaper: the kernel makes it the parent of remaining descendants, and it
kills them. Third, if this process itself is killed, the kernel sends SIGTERM to its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from loadgen.errors import LoadgenError
from loadgen.stacks import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

GRACE_SECONDS = 15.0
"""Time that a process has to end by itself; the monitor stops its tasks within it."""

_PR_SET_CHILD_SUBREAPER = 36
_LOG_TAIL_LINES = 15
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessFailedError(LoadgenError):
    """A process of the run ended or did not become ready; the text has the end of its log."""


@dataclass(frozen=True, eq=False)
class _Child:
    name: str
    process: subprocess.Popen[str]
    log: Path


class Supervisor:
    """A context that owns processes; leaving it ends them all in any case."""

    def __init__(self) -> None:
        self._running: list[_Child] = []
        self._others: set[int] = set()
        self._handlers: dict[signal.Signals, Any] = {}
        self._deferring = False
        self._interrupted = False

    def __enter__(self) -> Self:
        """Become the subreaper, and turn signals into KeyboardInterrupt."""
        self._others = set(processes.children(os.getpid()))
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._handlers = {number: signal.signal(number, self._interrupt) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes; signals wait until this is done, for a limited time."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        try:
            self._end_all()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            _prctl(_PR_SET_CHILD_SUBREAPER, 0)

    def start(self, name: str, command: Sequence[str | Path], log: Path, **options: Any) -> subprocess.Popen[str]:
        """Start a process that logs to ``log``; ``options`` are Popen's."""
        words = ["setpriv", "--pdeathsig", "TERM", *(str(word) for word in command)]
        # A signal between the start and the append would lose the process.
        with log.open("w") as output, self._deferred_signals():
            try:
                process: subprocess.Popen[str] = subprocess.Popen(
                    words,
                    stdin=options.pop("stdin", subprocess.DEVNULL),
                    stdout=options.pop("stdout", output),
                    stderr=output,
                    text=True,
                    start_new_session=True,
                    **options,
                )
            except OSError as error:
                raise ProcessFailedError(f"cannot start {name}: {error}; install util-linux (setpriv)") from error
            self._running.append(_Child(name, process, log))
        return process

    def wait_until(
        self, ready: Callable[[], bool], process: subprocess.Popen[str], name: str, log: Path, seconds: float
    ) -> None:
        """Wait until a process is ready; ProcessFailedError when it ends or takes longer."""
        deadline = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None:
                raise ProcessFailedError(f"{name} ended with status {process.returncode}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise ProcessFailedError(f"{name} was not ready after {seconds:.0f} s:\n{tail(log)}")
            time.sleep(0.05)

    def end(self, process: subprocess.Popen[str]) -> None:
        """End one process before the others; its remaining descendants end with the context."""
        for child in self._running:
            if child.process is process:
                _end(child)
                self._running.remove(child)
                return

    def check(self) -> None:
        """Raise ProcessFailedError when a process has ended unexpectedly.

        Call this from time to time during a long wait, while no other child of this process is being waited for. It
        also reaps ended descendants that the kernel has made children of this process, and would take the exit status
        from other waiters.
        """
        self._reap()
        for child in self._running:
            if child.process.poll() is not None:
                raise ProcessFailedError(
                    f"{child.name} ended with status {child.process.returncode}:\n{tail(child.log)}"
                )

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Defer signals during a short restoration."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupted = True
        if not self._deferring:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _deferred_signals(self) -> Iterator[None]:
        """Defer signals without blocking them, because a child would inherit the blocking."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._interrupted:
            raise KeyboardInterrupt

    def _reap(self) -> None:
        own = {child.process.pid for child in self._running} | self._others
        for pid in processes.children(os.getpid()):
            if pid not in own:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _end_all(self) -> None:
        for child in reversed(self._running):
            _end(child)
        self._running.clear()
        for _ in range(100):
            left = self._left()
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.02)

    def _left(self) -> set[int]:
        """Return all descendants but those of processes that this one had before the context began."""
        others = self._others.union(*(processes.descendants(pid) for pid in self._others))
        return set(processes.descendants(os.getpid())) - others


def tail(log: Path) -> str:
    """Return the last lines of a log, indented, with the log's name."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    except OSError as error:
        return f"  (no log: {error})"
    return "\n".join([*(f"  | {line}" for line in lines), f"  (end of {log})"])


def _end(child: _Child) -> None:
    process = child.process
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):  # nobody reads any more, which must not keep the process alive
                print(f"{child.name} did not end within {GRACE_SECONDS:.0f} s and is killed", flush=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"prctl({option})")
