# SPDX-License-Identifier: BSD-2-Clause
"""Locust's page: who may use it and for what, and a tab with what only Shai knows of a run.

The process that serves the page may be root's, and any user of the machine reaches its port. So the page asks for a
password that is made for each start, as its name is, and its form sets nothing but the number of users and the time.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import Response, request

from loadgen.driving import serving
from loadgen.scenarios import site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from locust.env import Environment
    from locust.web import WebUI

    from loadgen.scenarios.recording import Part

_USER = "shai"
_READING = {"GET", "HEAD"}
_CHANGING = {"locust.swarm", "locust.stop", "locust.reset_stats"}
"""All that the page may change: it starts and ends runs, and forgets the counts of Locust's own tables."""
_SETTABLE = {"user_count", "spawn_rate", "run_time"}
_KEY = "shai"
_COLUMNS = {
    "part": "Part",
    "queries": "Searches",
    "shown": "Documents shown",
    "withheld": "Documents withheld",
    "violations": "Shown and must not be",
    "checked": "Searches checked for that",
    "revoked": "Ended with their session",
}


def protect(page: WebUI, environment: Environment, path: str) -> None:
    """Let only the user who has started Locust use the page, and tell this user how, on standard error.

    ``path`` is where Locust serves it. SiteError when the page cannot be served safely.
    """
    if page.app is None:
        raise RuntimeError("the page has no application yet")
    site.take(page, page.app)
    password = secrets.token_urlsafe(16)
    known = f"Basic {base64.b64encode(f'{_USER}:{password}'.encode()).decode()}"
    host = f"{site.NAME}:{page.port}"

    @page.app.before_request
    def check() -> Response | None:
        if request.headers.get("Host") != host:
            return _refusal(
                HTTPStatus.MISDIRECTED_REQUEST, "the page has another name after each start: locust prints its address"
            )
        if request.headers.get("Origin", f"http://{host}") != f"http://{host}":
            return _refusal(HTTPStatus.FORBIDDEN, "another site's page has asked for this")
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), known.encode()):
            return _refusal(HTTPStatus.UNAUTHORIZED, "the user and the password are where locust was started")
        serving.take_time(request.environ)
        denied = None if request.method in _READING else _denied_change(environment)
        return _refusal(HTTPStatus.FORBIDDEN, denied) if denied else None

    @page.app.after_request
    def deny_frames(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = "frame-ancestors 'none'"
        return response

    print(
        f"The page is at http://{host}{path}/ and asks for a password: user {_USER}, password {password}",
        file=sys.stderr,
        flush=True,
    )


def _denied_change(environment: Environment) -> str:
    """Return why a request must change nothing; empty if it may. The page's form sends two more fields, unchanged."""
    if request.endpoint not in _CHANGING:
        return "the page cannot change this"
    unchanged = {"host": environment.host or "", "profile": environment.profile or ""}
    fields = request.form.items(multi=True)
    refused = {repr(name) for name, value in fields if name not in _SETTABLE and unchanged.get(name) != value}
    return f"only locust's options set {', '.join(sorted(refused))}" if refused else ""


def _refusal(status: HTTPStatus, text: str) -> Response:
    response = Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")
    if status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = 'Basic realm="load", charset="UTF-8"'
    return response


def extend(page: WebUI, parts: Callable[[], Sequence[Part]]) -> None:
    """Add the tab; ``parts`` returns those of the present run, or of the last one."""
    structure = [{"key": key, "title": title} for key, title in _COLUMNS.items()]
    page.template_args["extended_tabs"] = [{"title": "Shai", "key": _KEY}]
    page.template_args["extended_tables"] = [{"key": _KEY, "structure": structure}]

    if page.app is None:
        raise RuntimeError("the page has no application yet")

    @page.app.after_request
    def add(response: Response) -> Response:
        # The page asks for this, and finds the rows of further tables in it.
        if request.path.endswith("/stats/requests") and response.is_json:
            found = json.loads(response.get_data())
            found["extended_stats"] = [{"key": _KEY, "data": [_row(part) for part in parts()]}]
            response.set_data(json.dumps(found))
        return response


def _row(part: Part) -> dict[str, str]:
    values = part.values
    return {"part": part.phase or "whole run", **{key: f"{values[key]:,.0f}" for key in _COLUMNS if key in values}}
