# SPDX-License-Identifier: BSD-2-Clause
"""Counted nouns for messages."""

from __future__ import annotations


def count(number: int, noun: str, verb: tuple[str, str] | None = None, *, of: int | None = None) -> str:
    """Return a number with its noun: ``1 member is ready``, ``0 of 3 members are ready``.

    ``verb`` has the forms for one and for several; ``of`` is the total.
    """
    several = noun + ("es" if noun.endswith("s") else "s")
    among = "" if of is None else f" of {of}"
    text = f"{number}{among} {noun if number == 1 and of in {None, 1} else several}"
    return text if verb is None else f"{text} {verb[0] if number == 1 else verb[1]}"


IS_READY = ("is ready", "are ready")
"""The verb for ready members."""
