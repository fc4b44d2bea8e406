# SPDX-License-Identifier: BSD-2-Clause
"""Twins of a member: stacks on the member's data, with stores and monitors of their own."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from typing import TYPE_CHECKING, Any

from loadgen.stacks import manifests
from loadgen.stacks.launcher import Site, launching
from loadgen.stacks.member import MemberError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadgen.stacks.launcher import Launcher
    from loadgen.stacks.member import Member
    from loadgen.stacks.supervisor import Supervisor


@contextlib.contextmanager
def room(member: Member) -> Iterator[Path]:
    """Make a private directory beside the member's data and lock it; remove it at the end if it is empty.

    Directories that a killed run left in it are removed at once; files are kept.
    """
    path = member.scratch
    path.mkdir(mode=0o700, exist_ok=True)
    lock_file = path / "lock"
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MemberError(f"member {member.name} is being measured already ({path} is locked)") from None
        for left in path.iterdir():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
        try:
            yield path
        finally:
            if not any(entry.is_file() and entry != lock_file for entry in path.iterdir()):
                shutil.rmtree(path, ignore_errors=True)


def launcher(
    member: Member,
    documents: Sequence[dict[str, Any]],
    *,
    place: Path,
    logs: Path,
    cores: frozenset[int],
    supervisor: Supervisor,
) -> AbstractContextManager[Launcher]:
    """Return a context of a launcher for twins of a member, in `room`'s directory; it ends them."""
    site = Site(
        shai=member.shai,
        data=member.data,
        seed=member.seed,
        state=place,
        logs=logs,
        variables={name: value for name, value in member.variables.items() if name != "REDIS_SOCKET"},
        runtimes=member.runtimes,
        cores=cores,
        sources=member.sources,
    )
    serving = manifests.serving(documents, member.pipeline)
    return launching(site, documents, member.pipeline, supervisor, serving)
