# SPDX-License-Identifier: BSD-2-Clause
"""What the result of a task says to a person. Pure."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 600
"""Characters of a module's or program's output in a message, so that a member's row has room for all of it."""
_BEGINNING = 200
"""Characters that are kept of the beginning of a longer one, which says what it is about. Its end says most."""
_OWN_WORDS = re.compile(r"^(?:(?:Task failed|Module failed|Unexpected \w+ error): )+")
"""Ansible's, which say no more than that something has failed."""
_NOT_STARTED = "Error executing command."
"""What Ansible says of a command that the host cannot start; it does not name it."""
_TRACEBACK = "Traceback (most recent call last):"


def text(result: Mapping[str, Any]) -> str:
    """Return the part of a task's result that a person needs, in one line."""
    item = failed_item(result)
    if item is not None:
        return text(item)
    message = _flat(_OWN_WORDS.sub("", str(result.get("msg", "")).strip()))
    if message == _NOT_STARTED:
        message = _not_started(result)
    output = _flat(str(result.get("stderr") or result.get("stdout") or result.get("module_stderr") or ""))
    if output and output not in message:
        message = f"{message}: {output}" if message else output
    return shortened(message or "it failed without a message")


def shortened(words: str) -> str:
    """Return the beginning and the end of a text that is too long for a message."""
    return words if len(words) <= LONGEST else f"{words[:_BEGINNING]} … {words[_BEGINNING - LONGEST :]}"


def failed_item(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first item of a loop that has failed, or None."""
    results = [item for item in result.get("results") or () if isinstance(item, dict)]
    return next((item for item in results if item.get("failed") or item.get("unreachable")), None)


def delegated(result: Mapping[str, Any]) -> bool:
    """Whether a task ran on the operator's machine instead of the host."""
    return "_ansible_delegated_vars" in (failed_item(result) or result)


def _flat(words: str) -> str:
    """Put a text into one line. Of a Python program that has crashed only the error stays, not where it was."""
    before, found, after = words.partition(_TRACEBACK)
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    return " ".join((before + (lines[-1] if lines else "it crashed") if found else words).split())


def _not_started(result: Mapping[str, Any]) -> str:
    command = result.get("cmd") or ["the command"]
    program = str(command[0]) if isinstance(command, list) else str(command).partition(" ")[0]
    code = result.get("rc")
    why = f": {os.strerror(code)}" if isinstance(code, int) and code > 0 else ""
    return f"{program} cannot be started{why}"
