# SPDX-License-Identifier: BSD-2-Clause
"""Texts that somebody else wrote: what is kept of them can be shown in a status, an event and a line of the log."""

from __future__ import annotations

import re

LONGEST = 4096
"""Characters that are kept of a text, as many as the schemas allow in a condition."""
_BREAKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Halves of pairs of UTF-16, which no request can carry; controls, also those that change the direction of a line.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def cleaned(text: str, longest: int = LONGEST) -> str:
    """Return a text in one line of valid Unicode without control characters, cut to ``longest`` characters."""
    kept = text if len(text) <= longest else text[: longest - 1] + "…"
    return kept if kept.isprintable() else _UNFIT.sub("\ufffd", _BREAKS.sub(" ", kept))
