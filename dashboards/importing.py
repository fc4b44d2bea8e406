# SPDX-License-Identifier: BSD-2-Clause
"""Brings the boards into a running Grafana by its HTTP API."""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from dashboards.answers import NoRedirects, is_address, printable, read, redirection
from dashboards.boards import ALL
from dashboards.grafana.boards import document

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

TOKEN = "GRAFANA_TOKEN"  # noqa: S105, the variable's name
_TIMEOUT_SECONDS = 30.0
_FOLDER = "shai"
_MOST_BYTES = 4 << 20
_PATH = re.compile("/(?!/)[!-~]+")
"""An address on the same server, as Grafana makes it: ASCII without spaces."""
_REMEDIES = {
    HTTPStatus.UNAUTHORIZED: f"Grafana does not know the token: set {TOKEN} to the token of a service account "
    "(Administration, Service accounts)",
    HTTPStatus.FORBIDDEN: "the token's service account may not do this: give it the role Editor, or the permission to "
    "create folders and dashboards",
    HTTPStatus.NOT_FOUND: "the address is not that of a Grafana's first page: leave out everything after it, such as "
    "/dashboards",
    HTTPStatus.PRECONDITION_FAILED: "there is another dashboard of this name in the folder, or a plugin owns it: "
    "rename or remove that one",
}


class GrafanaError(Exception):
    """Grafana did not do what it was asked for; the text says why and what to do."""


@dataclass(frozen=True)
class Grafana:
    """A running Grafana: its address, and the token of a service account."""

    url: str
    token: str = field(repr=False)

    def put_folder(self, title: str) -> None:
        """Make the folder of the boards unless it is there. Raises GrafanaError."""
        known = self._ask("GET", f"/api/folders/{_FOLDER}", None, HTTPStatus.NOT_FOUND)
        if known is None:
            self._ask("POST", "/api/folders", {"uid": _FOLDER, "title": title})

    def put_board(self, board: Mapping[str, Any]) -> str:
        """Make a board, or replace the one with its uid; return its address. Raises GrafanaError."""
        answer = self._ask(
            "POST",
            "/api/dashboards/db",
            {
                "dashboard": {**board, "id": None},
                "folderUid": _FOLDER,
                "message": "python -m dashboards import",
                "overwrite": True,
            },
        )
        path = (answer or {}).get("url")
        # Anything else could lead to another server: urljoin leaves tabs and line breaks out, also of "/\t/host".
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise GrafanaError(f"{self.url} answered, but not as a Grafana: the answer names no dashboard")
        return urllib.parse.urljoin(self.url, path)

    def _ask(self, method: str, path: str, body: Any, absent: HTTPStatus | None = None) -> dict[str, Any] | None:
        """Return the answer, or None when its status is ``absent``."""
        request = urllib.request.Request(  # noqa: S310, the user's address
            self.url.rstrip("/") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(NoRedirects)  # they would send the token to whomever the answer names
        try:
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                found = read(answer, _MOST_BYTES, _TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            if error.code == absent:
                return None
            raise GrafanaError(f"{method} {self.url}{path}: {_said(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise GrafanaError(f"no Grafana answers at {self.url}: {printable(str(error))}") from error
        except ValueError as error:
            raise GrafanaError(f"{self.url} answered, but not as a Grafana: no JSON at {path}") from error
        if not isinstance(found, dict):
            raise GrafanaError(f"{self.url} answered, but not as a Grafana: no object at {path}")
        return found


def _said(error: urllib.error.HTTPError) -> str:
    """Return what a refusal says, and what to do."""
    try:
        message = str(read(error, _MOST_BYTES, _TIMEOUT_SECONDS)["message"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        message = error.reason if isinstance(error.reason, str) else ""
    if redirected := redirection(error):
        return redirected
    remedy = _REMEDIES.get(HTTPStatus(error.code)) if error.code in set(HTTPStatus) else None
    text = f"status {error.code}, {printable(message)}"
    return f"{text}. {remedy[0].upper()}{remedy[1:]}" if remedy else text


def put_all(grafana: Grafana, folder: str) -> Iterator[tuple[str, str]]:
    """Put every board into the folder; yield its title and address. Raises GrafanaError."""
    grafana.put_folder(folder)
    for board in ALL:
        yield board.title, grafana.put_board(document(board))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--grafana", required=True, metavar="URL", help="address of Grafana's first page")
    parser.add_argument(
        "--folder", default="Shai", metavar="TITLE", help="title of the folder, if it is new (%(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Import all boards. Return an exit code."""
    if not is_address(options.grafana):
        print(f"error: {options.grafana!r} is no address: use http://HOST:PORT or https://HOST", file=sys.stderr)
        return 1
    token = os.environ.get(TOKEN, "").strip()
    if not token or not (token.isascii() and token.isprintable()):
        lack = "is no token" if token else "is not set"
        print(f"error: {TOKEN} {lack}: {_REMEDIES[HTTPStatus.UNAUTHORIZED].partition(': ')[2]}", file=sys.stderr)
        return 1
    try:
        for title, url in put_all(Grafana(options.grafana, token), options.folder):
            print(f"{title:25} {printable(url)}", flush=True)
    except GrafanaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
