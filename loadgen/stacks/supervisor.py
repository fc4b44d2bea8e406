# SPDX-License-Identifier: BSD-2-Clause
"""Starts the processes of a run and sees to it that none of them outlives it.

Three nets, each for what the one before misses: every process gets its own group and is
ended in reverse order; whatever they leave behind is handed to us by the kernel, because
we are its subreaper, and is killed; and when we are killed ourselves, the kernel sends
our children SIGTERM.
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
"""How long a process may take to end by itself; the monitor stops its tasks within it."""

_PR_SET_CHILD_SUBREAPER = 36
_LOG_TAIL_LINES = 15
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessFailedError(LoadgenError):
    """A process of the run ended or did not get ready; the text has the end of its log."""


@dataclass(frozen=True, eq=False)
class _Child:
    name: str
    process: subprocess.Popen[str]
    log: Path


class Supervisor:
    """A context that owns processes; leaving it ends them all, whatever happened."""

    def __init__(self) -> None:
        self._running: list[_Child] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._deferring = False
        self._interrupted = False

    def __enter__(self) -> Self:
        """Become the subreaper, and turn signals into KeyboardInterrupt."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._handlers = {number: signal.signal(number, self._interrupt) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """End everything; further signals wait until that is done, which is bounded in time."""
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
        # A signal between the start and the note of it would lose the process.
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
        """Wait for a process to get ready; ProcessFailedError when it ends or takes longer."""
        deadline = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None:
                raise ProcessFailedError(f"{name} ended with status {process.returncode}:\n{tail(log)}")
            if time.monotonic() > deadline:
                raise ProcessFailedError(f"{name} was not ready after {seconds:.0f} s:\n{tail(log)}")
            time.sleep(0.05)

    def end(self, process: subprocess.Popen[str]) -> None:
        """End one process before the others; what it leaves behind ends with the context."""
        for child in self._running:
            if child.process is process:
                _end(child)
                self._running.remove(child)
                return

    def check(self) -> None:
        """Raise ProcessFailedError when a process has ended that nobody has asked to.

        Whoever waits for long calls it now and then, while no other child of this process is under way: it also reaps
        what has ended among the descendants that the kernel has handed to us, for whose end others may be waiting.
        """
        self._reap()
        for child in self._running:
            if child.process.poll() is not None:
                raise ProcessFailedError(
                    f"{child.name} ended with status {child.process.returncode}:\n{tail(child.log)}"
                )

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Keep signals out while things are put back; it has to be short."""
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
        """Hold signals back without blocking them, which the child would inherit."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        if self._interrupted:
            raise KeyboardInterrupt

    def _reap(self) -> None:
        own = {child.process.pid for child in self._running}
        for pid in processes.children(os.getpid()):
            if pid not in own:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _end_all(self) -> None:
        for child in reversed(self._running):
            _end(child)
        self._running.clear()
        for _ in range(100):
            left = processes.descendants(os.getpid())
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            time.sleep(0.02)


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
            with contextlib.suppress(OSError):  # nobody listens any more, which must not keep it alive
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
