# SPDX-License-Identifier: BSD-2-Clause
"""The commands of a page, with the output that the page shows.

They are in fenced blocks of the language ``console``. A line that begins with ``$ `` is a command, lines that begin
with ``> `` continue it, and other lines are its output; without such lines it may print anything. Words after
``console`` say more:

- ``terminal:NAME``: typed in another terminal than the page's first one. Each terminal starts in the top folder.

- ``refused``: the last command fails.

- ``stays``: the last command keeps running; the page goes on when it has printed what is shown.

- ``not run: REASON``: the block is not executed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testing.documents.pages import Block, Page

LANGUAGE = "console"
_NOT_RUN = "not run:"
_ANYTHING = "…"


class PageError(Exception):
    """A page violates the rules above; the text says where and what to do."""


class Ending(Enum):
    """How a command has to end."""

    SUCCEEDS = auto()
    REFUSED = auto()
    STAYS = auto()


@dataclass(frozen=True)
class Command:
    """One command, and its expected result."""

    line: int
    text: str
    shown: str
    terminal: str
    ending: Ending

    def matches(self, printed: str) -> bool:
        """Whether ``printed`` is what the page shows. White space does not count, and … stands for anything."""
        parts = [re.escape("".join(part.split())) for part in self.shown.split(_ANYTHING)]
        pattern = re.compile(".*".join(parts))
        plain = "".join(printed.split())
        if self.ending is Ending.STAYS:
            return pattern.search(plain) is not None
        return not self.shown or pattern.fullmatch(plain) is not None


def reason_not_run(block: Block) -> str | None:
    """Return why a block of commands is not executed, or None when it is."""
    return block.options.removeprefix(_NOT_RUN).strip() if block.options.startswith(_NOT_RUN) else None


def of(page: Page) -> Iterator[Command]:
    """Yield the commands of a page that are executed, in order."""
    for block in page.blocks():
        if block.language == LANGUAGE and reason_not_run(block) is None:
            yield from _commands(page.name, block)


def _commands(page: str, block: Block) -> Iterator[Command]:
    terminal, last = _options(page, block)
    waiting: Command | None = None
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            if waiting:
                yield waiting
            waiting = Command(number, line[2:], "", terminal, Ending.SUCCEEDS)
        elif waiting is None:
            raise PageError(f"{page}:{number}: a block of commands begins with a line “$ COMMAND”, not with {line!r}")
        elif line.startswith("> ") and not waiting.shown:
            waiting = replace(waiting, text=f"{waiting.text}\n{line[2:]}")
        else:
            waiting = replace(waiting, shown=f"{waiting.shown}{line}\n")
    if waiting is None:
        raise PageError(f"{page}:{block.line}: a block of commands without a command")
    yield replace(waiting, ending=last)


def _options(page: str, block: Block) -> tuple[str, Ending]:
    terminal, last = "", Ending.SUCCEEDS
    for option in block.options.split():
        match option.partition(":"):
            case ["terminal", ":", name] if name:
                terminal = name
            case ["refused", "", ""]:
                last = Ending.REFUSED
            case ["stays", "", ""]:
                last = Ending.STAYS
            case _:
                raise PageError(
                    f"{page}:{block.line - 1}: {option!r} after {LANGUAGE}: there are terminal:NAME, refused, stays, "
                    f"and {_NOT_RUN} REASON"
                )
    return terminal, last
