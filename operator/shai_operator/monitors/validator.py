# SPDX-License-Identifier: BSD-2-Clause
"""The monitor's own parser and checker, run as a child process: `shai validate`.

There is one implementation of the policy language and of the rules for manifests. The operator uses it through this
process. The child has no state. When it ends, it is started again, and checks fail until then (admission then refuses).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from shai_operator.monitors.client import MonitorClient
from shai_operator.monitors.errors import MonitorAnswerError, MonitorUnreachableError
from shai_operator.reconcile import bundles
from shai_operator.reconcile.objects import Reference, name, namespace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from shai_operator.reconcile.objects import Object

_LOGGER = logging.getLogger(__name__)

_SUSPICIOUS = "suspicious"
MISSING = "reference"
"""The code of a problem that is over when another object comes."""
START_SECONDS = 60.0
STOP_SECONDS = 5.0
_FIRST_RESTART_SECONDS, _LAST_RESTART_SECONDS = 0.1, 10.0


@dataclass(frozen=True)
class Problem:
    """A problem of one object. ``message`` says what is wrong and how to correct it."""

    object: Reference
    path: str
    line: int
    column: int
    message: str
    code: str

    def __str__(self) -> str:
        """Return place and message, as in ``spec.text:3:17: …``."""
        place = f"{self.path}:{self.line}:{self.column}: " if self.line else f"{self.path}: " if self.path else ""
        return place + self.message


@dataclass(frozen=True)
class Answer:
    """The result of a check."""

    problems: tuple[Problem, ...]
    parameters: Mapping[str, tuple[str, ...]]
    """The parameters of each policy without a problem, by the policy's name."""
    composed: Mapping[str, str] = field(default_factory=dict)
    """The texts of policies that include others of these objects, with their clauses in place, by the policy's name."""
    suspicions: tuple[Problem, ...] = ()
    """What texts of policies say that was probably not meant. It keeps nothing from being used."""


class Validator:
    """Runs the child. Enter it as an async context; `check` may be called concurrently."""

    def __init__(self, shai: Path, directory: Path) -> None:
        self._shai = shai
        self._socket = directory / "validate.sock"
        self._client: MonitorClient | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._up = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Start the child; MonitorUnreachableError when it does not get ready."""
        self._client = MonitorClient(socket=self._socket)
        self._keeper = asyncio.create_task(self._keep(), name="validator")
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._up.wait()
        except TimeoutError:
            await self.__aexit__()
            raise MonitorUnreachableError(
                f"{self._shai} validate was not ready after {START_SECONDS:.0f} s; its messages are above"
            ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the child."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])  # if it were awaited, its end could not be told from that of who exits
            if not self._keeper.cancelled():
                self._keeper.result()
        if self._client is not None:
            await self._client.close()

    async def check(self, objects: Iterable[Object], *, alone: bool = False) -> Answer:
        """Return all problems of these objects together.

        If two objects claim the same, the later one has the problem. With ``alone``, references to objects that are not
        among them are no errors, but for policies that others include. MonitorError when the child does not answer.
        """
        if self._client is None:
            raise RuntimeError("the validator is not entered")
        sources, places = [], {}
        for obj in objects:
            source = f"{obj['kind']}/{namespace(obj)}/{name(obj)}"
            places[source] = Reference(obj["kind"], namespace(obj), name(obj))
            sources.append({"name": source, "text": bundles.dump(manifest(obj))})
        answer = await self._client.validate(sources, alone=alone)
        unknown = [entry["source"] for entry in answer["errors"] if entry["source"] not in places]
        if unknown:
            raise MonitorAnswerError(f"{self._shai} validate: it names {unknown[0]}, about which it was not asked")
        return Answer(
            tuple(_problem(entry, places[entry["source"]]) for entry in answer["errors"]),
            {policy: tuple(names) for policy, names in answer["parameters"].items()},
            answer["composed"],
            tuple(
                _problem(entry, places[entry["source"]])
                for entry in answer["warnings"]
                if entry["code"] == _SUSPICIOUS and entry["source"] in places
            ),
        )

    async def _keep(self) -> None:
        delay = _FIRST_RESTART_SECONDS
        while True:
            child = await asyncio.create_subprocess_exec(
                "setpriv", "--pdeathsig", "TERM", str(self._shai), "validate", "--socket", str(self._socket)
            )
            try:
                if await self._ready(child):
                    delay = _FIRST_RESTART_SECONDS
                    self._up.set()
                    await child.wait()
            finally:
                self._up.clear()
                await _end(child)
            _LOGGER.error("%s validate ended with status %s; starting it again", self._shai, child.returncode)
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_RESTART_SECONDS)

    async def _ready(self, child: asyncio.subprocess.Process) -> bool:
        """Wait until the child answers; return False when it ends before."""
        while child.returncode is None:
            try:
                await self.check(())
            except MonitorUnreachableError:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await child.wait()
            else:
                return True
        return False


def manifest(obj: Object) -> dict[str, Any]:
    """Reduce an object to the fields of a monitor's manifest."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {"name": name(obj)},
        "spec": obj.get("spec") or {},
    }


def _problem(entry: dict[str, Any], ref: Reference) -> Problem:
    return Problem(
        object=ref,
        path=entry["path"],
        line=entry["textLine"],
        column=entry["textColumn"],
        message=entry["message"],
        code=entry["code"],
    )


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await child.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


def messages(problems: Sequence[Problem], most: int = 3) -> str:
    """Return the first few problems, and the number of the others."""
    lines = [str(problem) for problem in problems[:most]]
    if len(problems) > most:
        lines.append(f"and {len(problems) - most} more")
    return "; ".join(lines)
