# SPDX-License-Identifier: BSD-2-Clause
"""Holds many live idle sessions, revokes some of them at once, and measures when the last one has ended.

Revocation is immediate: the monitor ends a session that has lost an access. From the moment in which its connection
closes, its worker is dead, and nothing that it asks for can succeed any more.
"""

from __future__ import annotations

import contextlib
import json
import resource
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.driving.protocol import FrontEnd, Session
from loadgen.errors import LoadgenError
from loadgen.stacks import crowded, launcher, manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.datasets.population import Person
    from loadgen.stacks.launcher import Site
    from loadgen.stacks.monitor import Monitor
    from loadgen.stacks.supervisor import Supervisor

_MONITOR = "crowd"
_HOST = "127.0.0.1"
_END_SECONDS = 60.0
_DESCRIPTORS = 1 << 19  # of the monitor, and of this process


class LiveError(LoadgenError):
    """Revoking did not end the sessions that it should have ended, or ended others; the text says which."""


@dataclass(frozen=True)
class _Held:
    """A live session and its user."""

    session: Session
    pipeline: str
    fact: dict[str, Any]
    """The fact on which the user's only access rests."""


def measure(
    site: Site,
    example: Sequence[dict[str, Any]],
    supervisor: Supervisor,
    *,
    sessions: int,
    revoked: int,
    options: Sequence[str],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Hold ``sessions`` and revoke ``revoked`` of them; with fewer if the machine does not hold as many, say why.

    ``options`` are further ones of the monitor.
    """
    pipelines = crowded.plan(sessions, _HOST)
    crowded.write_data(site.data, pipelines)
    documents = crowded.bundle(example, pipelines)
    with _descriptors(), launcher.launching(site, example, "", supervisor) as launching:
        monitor, _pid = launching.start_monitor(_MONITOR, options)
        memory = _available()
        held: list[_Held] = []
        try:
            limit = _hold(monitor, manifests.write(site.state / f"{_MONITOR}.bundle", documents), pipelines, held, tell)
            taken = memory - _available()
            chosen = _spread(held, min(revoked, len(held)))
            tell(f"revoking {len(chosen)} of {len(held)} sessions")
            times = _revoke(monitor, held, chosen) if chosen else {}
        finally:
            for one in held:
                one.session.close()
    return {
        "live": len(held),
        "wanted": sessions,
        "limit": limit,
        "pipelines": len({one.pipeline for one in held}),
        "memory_kib_per_session": round(taken / max(1, len(held))),
        "revoked": len(chosen),
        **times,
    }


def _hold(
    monitor: Monitor,
    bundle: Path,
    pipelines: Sequence[crowded.Pipeline],
    held: list[_Held],
    tell: Callable[[str], None],
) -> str | None:
    """Start one pipeline after the other and log in its users. Return what prevented it from going on, if something."""
    try:
        monitor.call("apply", "-f", str(bundle))
        for number, pipeline in enumerate(pipelines, start=1):
            tell(f"pipeline {number} of {len(pipelines)}: {len(held)} sessions live")
            monitor.call("analyze", "--pipeline", pipeline.name)
            monitor.call("task", "start", pipeline.name, crowded.FRONT_END, "--wait")
            for person in pipeline.people:
                session = _log_in(pipeline, person)
                held.append(_Held(session, pipeline.name, crowded.friendship(person)))
    except (LoadgenError, OSError) as error:
        return str(error)
    return None


def _log_in(pipeline: crowded.Pipeline, person: Person) -> Session:
    session = Session(FrontEnd.dialled(pipeline.address, pipeline.name))
    try:
        session.login(person)
    except BaseException:
        session.close()
        raise
    return session


def _spread(held: Sequence[_Held], count: int) -> list[_Held]:
    """Choose sessions of all pipelines alike."""
    return [held[number * len(held) // count] for number in range(count)]


def _revoke(monitor: Monitor, held: Sequence[_Held], chosen: Sequence[_Held]) -> dict[str, float]:
    """Remove the facts of the chosen sessions' users; return when the monitor answered and when the last has ended."""
    open_ends = {one.session.fileno() for one in chosen}
    others = {one.session.fileno() for one in held} - open_ends
    connection = monitor.connect()
    with contextlib.closing(connection), select.epoll() as poll:
        connection.connect()
        answer = connection.sock.fileno()
        for descriptor in (*open_ends, *others, answer):
            poll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP)
        started = time.perf_counter()
        connection.request("POST", "/v1/facts", json.dumps({"remove": [one.fact for one in chosen]}))
        answered = last = 0.0
        while open_ends or not answered:
            ready = poll.poll(_END_SECONDS)
            now = (time.perf_counter() - started) * 1000
            if not ready:
                raise LiveError(
                    f"{len(open_ends)} of {len(chosen)} revoked sessions live on after {_END_SECONDS:.0f} s"
                )
            for descriptor, _events in ready:
                poll.unregister(descriptor)
                if descriptor in others:
                    raise LiveError("a session was ended that has lost no access")
                if descriptor == answer:
                    answered = now
                else:
                    open_ends.discard(descriptor)
                    last = now
        response = connection.getresponse()
        found = json.loads(response.read())
    if found.get("sessionsReset") != len(chosen):
        raise LiveError(f"the monitor was to end {len(chosen)} sessions, and says: {found}")
    return {"revoked_ms": round(last, 3), "answered_ms": round(answered, 3)}


@contextlib.contextmanager
def _descriptors() -> Iterator[None]:
    """Raise the limit of descriptors as far as possible, for the monitor too: it has several for each session."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(before[1], min(_DESCRIPTORS, int(Path("/proc/sys/fs/nr_open").read_text())))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except ValueError:  # a container without CAP_SYS_RESOURCE
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _available() -> int:
    """Return the memory that the kernel can still give out, in KiB."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
