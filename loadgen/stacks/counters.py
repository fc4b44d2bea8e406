# SPDX-License-Identifier: BSD-2-Clause
"""Counts what processes do: page faults, context switches, system calls.

These numbers hardly depend on the machine. The kernel's performance events count them: for each thread that lives when
counting begins, and for all threads and processes that it makes afterwards, ended ones too. Counting costs time of its
own, so no slice is counted whose CPU time is measured.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

KINDS = ("faults", "switches", "syscalls")
"""Minor page faults, context switches, and system calls that were carried out (not those that the monitor answered)."""

_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}  # perf_event_open of <asm/unistd.h>
_SOFTWARE, _TRACEPOINT = 1, 2
_SWITCHES, _MINOR_FAULTS = 3, 5  # PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_PAGE_FAULTS_MIN
_INHERIT = 1 << 1
_SIZE = 64  # PERF_ATTR_SIZE_VER0
_CLOEXEC = 8
_EVERY_CALL = "events/raw_syscalls/sys_enter/id"
_libc = ctypes.CDLL(None, use_errno=True)


class CountersError(LoadgenError):
    """The kernel does not count for this program; the text says why and what to do."""


@dataclass(frozen=True)
class _Event:
    kind: str
    type: int
    number: int

    def open(self, thread: int) -> int:
        """Return a descriptor that counts for a thread and what it makes from now on."""
        attributes = struct.pack("<IIQQQQQ", self.type, _SIZE, self.number, 0, 0, 0, _INHERIT).ljust(_SIZE, b"\0")
        found = int(_libc.syscall(_SYSTEM_CALL[platform.machine()], attributes, thread, -1, -1, _CLOEXEC))
        if found == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return found


class Counters:
    """Counts from ``__enter__`` on, for groups of processes by name."""

    def __init__(self, groups: Mapping[str, AbstractSet[int]]) -> None:
        self._groups = groups
        self._open: list[tuple[str, str, int]] = []

    def __enter__(self) -> Self:
        """Begin; CountersError when the kernel refuses."""
        try:
            events = [_Event("faults", _SOFTWARE, _MINOR_FAULTS), _Event("switches", _SOFTWARE, _SWITCHES)]
            events.append(_Event("syscalls", _TRACEPOINT, _tracepoint(_EVERY_CALL)))
            for name, pids in self._groups.items():
                for thread in (thread for pid in pids for thread in _threads(pid)):
                    with contextlib.suppress(ProcessLookupError):  # it has just ended
                        self._open += [(name, event.kind, event.open(thread)) for event in events]
        except (OSError, KeyError) as error:
            self.__exit__()
            raise CountersError(
                f"cannot count page faults, switches and system calls: {error}; "
                "this needs root, x86-64 or arm64, and a kernel with performance events and tracefs"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        """End counting."""
        for _name, _kind, descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def read(self) -> dict[str, dict[str, int]]:
        """Return the numbers so far, by kind and group."""
        found = {kind: dict.fromkeys(self._groups, 0) for kind in KINDS}
        for name, kind, descriptor in self._open:
            found[kind][name] += int.from_bytes(os.read(descriptor, 8), "little")
        return found


def _threads(pid: int) -> list[int]:
    try:
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:
        return []


def _tracepoint(name: str) -> int:
    """Return a tracepoint's number, which is a file of tracefs."""
    usual = Path("/sys/kernel/tracing") / name
    if usual.exists():
        return int(usual.read_text())
    with _tracefs() as place:
        return int((place / name).read_text())


@contextlib.contextmanager
def _tracefs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        if _libc.mount(b"tracefs", directory.encode(), b"tracefs", 0, None) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"mount tracefs: {os.strerror(number)}")
        try:
            yield Path(directory)
        finally:
            _libc.umount2(directory.encode(), 0)
