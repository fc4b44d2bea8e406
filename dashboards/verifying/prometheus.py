# SPDX-License-Identifier: BSD-2-Clause
"""Queries of a running Prometheus."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dashboards.answers import NoRedirects, printable, read, redirection
from dashboards.model import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_SECONDS = 60.0
_MOST_BYTES = 256 << 20
_FEWEST_STEPS, _MOST_STEPS = 60, 10_000
"""At how many moments of the range a query is evaluated. Prometheus refuses more than 11,000."""
_BUILT_IN = re.compile(r"\$(__rate_interval|__range|[a-z]+)\b")


class PrometheusError(Exception):
    """Prometheus did not answer, or refused a query; the text says why and what to do."""


@dataclass(frozen=True)
class Series:
    """A result over time."""

    labels: Mapping[str, str]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Scope:
    """What a board would show: a range, and the values that its variables have; any value if not named."""

    end: float
    """Seconds since 1970."""
    seconds: float
    rate_seconds: float = 60.0
    """Grafana's $__rate_interval: at least four times the interval of scrapes."""
    chosen: Mapping[str, str] = field(default_factory=dict)


def substitute(expr: str, scope: Scope) -> str:
    """Return an expression as Grafana would send it."""
    values = {name: re.escape(scope.chosen[name]) if name in scope.chosen else ".*" for name in VARIABLES}
    # In a PromQL string:
    quoted = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
    known = quoted | {"__rate_interval": f"{scope.rate_seconds:g}s", "__range": f"{scope.seconds:g}s"}
    # A function, because values have backslashes; label_replace's $1 is no variable.
    return _BUILT_IN.sub(lambda found: known.get(found[1], found[0]), expr)


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus by its URL."""

    url: str

    def over_time(self, expr: str, scope: Scope) -> list[Series]:
        """Return a query's results at moments of the range, whether Grafana asks for all of them or for the last.

        Raises PrometheusError.
        """
        asked = {
            "query": substitute(expr, scope),
            "start": f"{scope.end - scope.seconds:.3f}",
            "end": f"{scope.end:.3f}",
            "step": f"{_step(scope):.3f}",
        }
        found = self._ask("/api/v1/query_range", asked)
        try:
            return [
                Series(dict(series["metric"]), tuple(float(value) for _, value in series["values"]))
                for series in found["result"]
            ]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise PrometheusError(f"{self.url} answered, but not as a Prometheus: no series over time") from error

    def _ask(self, path: str, asked: Mapping[str, str]) -> dict[str, Any]:
        body = urllib.parse.urlencode(asked).encode()
        request = urllib.request.Request(self.url.rstrip("/") + path, data=body)  # noqa: S310, the user's URL
        opener = urllib.request.build_opener(NoRedirects)
        try:
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                data: dict[str, Any] = read(answer, _MOST_BYTES, _TIMEOUT_SECONDS)["data"]
                return data
        except urllib.error.HTTPError as error:
            raise PrometheusError(f"{self.url} refused a query: {_said(error)}") from error
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise PrometheusError(
                f"no Prometheus answers at {self.url}: {printable(str(error))}. "
                "Is it running, and is it the URL of Prometheus itself?"
            ) from error


def _step(scope: Scope) -> float:
    """Return the time between two moments, in seconds: that between two scrapes, if the range is not too long.

    What lasts for seconds only, such as the figures of a rollout's step, is between two moments otherwise.
    """
    return max(min(scope.rate_seconds / 4, scope.seconds / _FEWEST_STEPS), scope.seconds / _MOST_STEPS, 1.0)


def _said(error: urllib.error.HTTPError) -> str:
    """Return what Prometheus says of a query that it refuses."""
    if redirected := redirection(error):
        return redirected
    try:
        return printable(str(read(error, _MOST_BYTES, _TIMEOUT_SECONDS)["error"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return f"HTTP status {error.code}"
