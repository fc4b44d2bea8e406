# SPDX-License-Identifier: BSD-2-Clause
"""What a server answers, which may be anything: read within limits, and printed without effect on the terminal."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from http.client import HTTPResponse

_PIECE_BYTES = 65536
_LONGEST_TEXT = 300


class AnswerError(ValueError):
    """An answer that is too long, too slow or too deep; the text says which."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirections unfollowed: a server would choose which others this machine asks, and what they are told."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def redirection(error: urllib.error.HTTPError) -> str:
    """Say what to do about a redirection that was not followed; empty: it is none."""
    if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
        return f"redirected to {printable(error.headers.get('Location', ''))}: use that address"
    return ""


def read(answer: HTTPResponse | urllib.error.HTTPError, most: int, seconds: float) -> Any:
    """Return the JSON of an answer of at most ``most`` bytes. ValueError if it is none, OSError if it is cut off."""
    content = bytearray()
    end = time.monotonic() + seconds
    while piece := answer.read1(_PIECE_BYTES):
        content += piece
        if len(content) > most:
            raise AnswerError(f"the answer has more than {most} bytes")
        if time.monotonic() > end:
            raise AnswerError(f"the answer took more than {seconds:.0f} s")
    try:
        return json.loads(content)
    except RecursionError as error:
        raise AnswerError("the answer is nested too deeply") from error


def is_address(text: str) -> bool:
    """Whether a text is the URL of a server."""
    try:
        address = urlsplit(text)
    except ValueError:  # what is in brackets is no address
        return False
    return address.scheme in {"http", "https"} and bool(address.hostname)


def printable(text: str) -> str:
    """Return a server's text for a terminal: on one line, and without what changes the terminal."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}…"
