# SPDX-License-Identifier: BSD-2-Clause
"""A tab of Locust's page with what only Shai knows of a run: what was withheld, and what must not have been shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flask import request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Response
    from locust.web import WebUI

    from loadgen.scenarios.recording import Part

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
