# SPDX-License-Identifier: BSD-2-Clause
"""Serves the load generator's metrics while it runs, and tells Prometheus where.

The port is a free one on loopback, which only root can take if this process is root's: after it has ended, Prometheus
asks there until it knows. Prometheus finds the port by a file in the discovery directory, which is removed at the end.
The directory may hold anything: only regular files with a load generator's name are ever touched, and only those that
no process holds any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from typing import TYPE_CHECKING

import gevent.event
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, make_wsgi_app
from prometheus_client.registry import Collector

from loadgen.driving import serving
from loadgen.driving.privileged import privileged_port
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.core import Metric as Family

    from loadgen.driving.discovery import Discovery
    from loadgen.driving.metrics import TallyCollector

HOST = "127.0.0.1"
_NAME = re.compile(r"loadgen-[0-9]{1,10}\.json")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


LAST_SCRAPE_SECONDS = 20.0
"""How long a process waits until Prometheus knows what it has counted last."""


class AnnouncementError(LoadgenError):
    """Prometheus cannot be told of this process; the text says why."""


class Exporter(Collector):
    """The metrics of this process as they are served. ``port`` is on loopback."""

    def __init__(self, collector: TallyCollector) -> None:
        self._collector = collector
        self._scraped = gevent.event.Event()
        self._seen: int | None = None
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        for standard in (ProcessCollector, PlatformCollector, GCCollector):
            standard(registry=registry)
        application = make_wsgi_app(registry)
        self._server = serving.server((HOST, privileged_port(HOST)), application)
        self._server.start()
        self.port = int(self._server.server_port or 0)

    def collect(self) -> Iterator[Family]:
        """Yield all metrics, for a scrape."""
        self._seen = self._collector.counted
        self._scraped.set()
        yield from self._collector.collect()

    def await_last_scrape(self, seconds: float) -> bool:
        """Wait until Prometheus knows the last counts, if it has read any; return whether it does, or reads none."""
        if self._seen is None or self._seen == self._collector.counted:
            return True
        self._scraped.clear()
        return bool(self._scraped.wait(seconds))

    def close(self) -> None:
        """Serve nothing more."""
        self._server.stop(timeout=1)


@contextlib.contextmanager
def served(collector: TallyCollector, discovery: Discovery | None, warn: Callable[[str], None]) -> Iterator[Exporter]:
    """Serve metrics, and announce them in a discovery directory if there is one.

    That they cannot be announced is a warning: the load does not depend on it.
    """
    exporter = Exporter(collector)
    with contextlib.ExitStack() as stack:
        stack.callback(exporter.close)
        if discovery is not None:
            try:
                stack.enter_context(announced(discovery, exporter.port))
            except AnnouncementError as error:
                warn(str(error))
        yield exporter


@contextlib.contextmanager
def announced(discovery: Discovery, port: int) -> Iterator[None]:
    """Keep a file about this process in the directory's ``targets``; AnnouncementError when it cannot be written.

    Its lock says that the process lives, so that files of processes that were killed can be told and are removed here.
    It is a lock for writing, which others cannot have who may only read the file.
    """
    targets = discovery.directory / "targets"
    try:
        targets.mkdir(parents=True, exist_ok=True)
        folder = os.open(targets, _DIRECTORY)
    except OSError as error:
        raise AnnouncementError(f"metrics at {HOST}:{port} are not announced to Prometheus: {error}") from error
    name = f"loadgen-{os.getpid()}.json"
    try:
        _remove_stale(folder)
        try:
            file = _write(folder, name, port, discovery.labels)
        except OSError as error:
            raise AnnouncementError(
                f"metrics at {HOST}:{port} are not announced to Prometheus: cannot write {targets / name}: {error}"
            ) from error
        try:
            yield
        finally:
            _remove(folder, name, file)
            os.close(file)
    finally:
        os.close(folder)


def _write(folder: int, name: str, port: int, labels: dict[str, str]) -> int:
    """Write and lock the file; return its descriptor, which holds the lock."""
    temporary = f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)  # of a killed process with the same number
    file = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # while nobody else can open it
        os.fchmod(file, 0o644)  # whatever the umask: Prometheus is another user
        found = [{"targets": [f"{HOST}:{port}"], "labels": {"job": "shai-loadgen", **labels}}]
        os.write(file, json.dumps(found).encode() + b"\n")
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.close(file)
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return file


def _remove_stale(folder: int) -> None:
    for name in os.listdir(folder):
        if not _NAME.fullmatch(name):
            continue
        # What cannot be opened or removed belongs to somebody else.
        with contextlib.suppress(OSError):
            file = os.open(name, _LOOK, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    # Fails while its process lives, and is compatible with what others can lock.
                    fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    _remove(folder, name, file)
            finally:
                os.close(file)


def _remove(folder: int, name: str, file: int) -> None:
    """Remove a file if the name still means the one that is open."""
    with contextlib.suppress(OSError):
        there, meant = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(file)
        if (there.st_dev, there.st_ino) == (meant.st_dev, meant.st_ino):
            os.unlink(name, dir_fd=folder)
