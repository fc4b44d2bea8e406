# SPDX-License-Identifier: BSD-2-Clause
"""Executes the commands of a page in order, with one shell for each terminal."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from testing.documents.commands import Command, Ending
from testing.documents.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_COMMAND_SECONDS = 1200.0
# Variables that a new user does not have.
_FOREIGN = ("KUBECONFIG", "SHAI_SOCKET", "SHAI_DEVCLUSTER", "MAKEFLAGS", "MAKELEVEL")


class CommandError(Exception):
    """A command did not do what its page says; the text has what it printed."""


def execute(page: str, commands: Iterable[Command], checkout: Path, tell: Callable[[str], None]) -> None:
    """Execute commands in ``checkout`` and ``tell`` of each; CommandError at the first failure.

    Commands that keep running are interrupted at the end. Processes that commands start in the background continue: see
    `isolation`.
    """
    with tempfile.TemporaryDirectory(prefix="shai-page-") as scratch:
        environment = _environment(Path(scratch))
        terminals: dict[str, Terminal] = {}
        try:
            for command in commands:
                tell(f"{page}:{command.line}: {command.text}")
                if command.terminal not in terminals:
                    log = Path(scratch) / f"terminal-{len(terminals)}.log"
                    terminals[command.terminal] = Terminal(checkout, environment, log)
                tell(_run(page, command, terminals[command.terminal]))
        finally:
            for terminal in reversed(terminals.values()):
                terminal.interrupt()


def _run(page: str, command: Command, terminal: Terminal) -> str:
    terminal.type(command.text)
    stays = command.ending is Ending.STAYS
    try:
        status = terminal.status(lambda: stays and command.matches(terminal.printed()), _COMMAND_SECONDS)
    except TimeoutError:
        raise _wrong(page, command, terminal, f"it did not get there in {_COMMAND_SECONDS:.0f} s") from None
    if stays != (status is None):
        raise _wrong(page, command, terminal, f"it ended, with status {status}")
    if not stays and (command.ending is Ending.REFUSED) != (status != 0):
        raise _wrong(page, command, terminal, f"it ended with status {status}")
    if not command.matches(terminal.printed()):
        raise _wrong(page, command, terminal, f"the page shows something else:\n{command.shown}")
    return terminal.printed()


def _wrong(page: str, command: Command, terminal: Terminal, what: str) -> CommandError:
    return CommandError(f"{page}:{command.line}: {command.text}\n{what}\nIt printed:\n{terminal.printed()}")


def _environment(scratch: Path) -> Mapping[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return {**own, "XDG_STATE_HOME": str(scratch / "state"), "PYTHONUNBUFFERED": "1"}
