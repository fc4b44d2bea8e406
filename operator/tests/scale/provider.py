# SPDX-License-Identifier: BSD-2-Clause
"""A provider whose members are in one process beside the operator."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from shai_operator.providers import authority
from shai_operator.providers.interface import Failure, Outcome, Reason
from shai_operator.providers.local import local_host
from shai_operator.providers.placement import place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from shai_operator.providers.authority import Identity
    from shai_operator.providers.interface import Grounds, Host, Member, MemberConfiguration, Placement, Pool, Progress
    from shai_operator.providers.playbooks import Playbooks

_ONE_LINE = 1 << 20


class StandInProvider:
    """Implements `interface.Provider` by telling the process which members there are."""

    installer = "stand-in"

    def __init__(self, playbooks: Playbooks, root: Identity) -> None:
        del playbooks
        self._root = root
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    def place(self, pool: Pool, ordinals: Sequence[int], current: Mapping[int, str]) -> Placement:
        return place(pool, [local_host(pool.max_members)], ordinals, current)

    async def provision(
        self,
        host: Host,
        members: Sequence[Member],
        configuration: MemberConfiguration,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        del host, progress, cancel
        outcomes = {}
        for member in members:
            identity = authority.issue_server(self._root, member.address)
            told = {"name": member.name, "address": member.address, "port": configuration.monitor_port}
            await self._tell({**told, "certificate": identity.certificate, "key": identity.key})
            outcomes[member.name] = Outcome(changed=True, certificate_ends=identity.ends)
        return outcomes

    async def remove(
        self,
        host: Host,
        members: Sequence[Member],
        place: Grounds,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Mapping[str, Outcome]:
        del host, place, progress, cancel
        for member in members:
            await self._tell({"name": member.name})
        return {member.name: Outcome(changed=True) for member in members}

    async def read(
        self,
        host: Host,
        member: Member,
        place: Grounds,
        files: Sequence[str],
        destination: Path,
        *,
        progress: Callable[[Progress], None],
        cancel: asyncio.Event,
    ) -> Outcome:
        del host, place, files, destination, progress, cancel
        return Outcome(Failure(Reason.PLAYBOOK_FAILED, f"{member.name} is a stand-in and has no data"))

    async def close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()

    async def _tell(self, member: Mapping[str, object]) -> None:
        """Have the process begin or end a member, and wait until it has."""
        async with self._turn:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "tests.scale.members", stdin=pipe, stdout=pipe, limit=_ONE_LINE
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(member).encode() + b"\n")
            if not await self._process.stdout.readline():
                raise RuntimeError("the process of the stand-ins has ended")
