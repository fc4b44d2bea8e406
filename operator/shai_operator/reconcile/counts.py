# SPDX-License-Identifier: BSD-2-Clause
"""Numbers in sentences."""

from __future__ import annotations


def count(number: int, noun: str, verb: tuple[str, str] | None = None, *, of: int | None = None) -> str:
    """Write what there is: ``1 member is ready``, ``0 of 3 members are ready``.

    ``verb`` is said of one and of several; ``of`` is how many there are in all.
    """
    several = noun + ("es" if noun.endswith("s") else "s")
    among = "" if of is None else f" of {of}"
    said = f"{number}{among} {noun if number == 1 and of in {None, 1} else several}"
    return said if verb is None else f"{said} {verb[0] if number == 1 else verb[1]}"


IS_READY = ("is ready", "are ready")
"""The verb that members have most often."""
