# SPDX-License-Identifier: BSD-2-Clause
"""Finds the demo that is running on this machine, by the file that it writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from loadgen.datasets.sizes import DATASETS
from loadgen.driving.discovery import CLUSTER, Discovery
from loadgen.errors import LoadgenError

_ROOT = Path(__file__).resolve().parents[2]
PLACE = _ROOT / "out" / "demo" / "current.json"
"""Where a demo of this checkout says that it is running, wherever it writes its other files."""


class NoDemoError(LoadgenError):
    """No demo is running, or its file is damaged; the text says what to do."""


@dataclass(frozen=True)
class Demo:
    """A running demo, as its file describes it."""

    host: str
    """The URL of the search service."""
    pipeline: str
    data: Path
    """The data directory, with the keys of the users."""
    service: str = ""
    """What logins sign, if not the host's HOST:PORT."""
    size: str = "quick"
    """The size of the data."""
    socket: Path | None = None
    """The monitor's."""
    scrape: Path | None = None
    """Where metrics are announced to Prometheus; None: nowhere."""
    cluster: str = CLUSTER
    namespace: str = ""
    """Of the pipeline, where metrics are announced."""
    member: Path | None = None
    """The description of the pool's member, for a measurement beside mode baseline."""

    @property
    def discovery(self) -> Discovery | None:
        """Where metrics are announced, and how."""
        return Discovery(self.scrape, self.cluster, self.namespace) if self.scrape else None


def find(path: Path = PLACE) -> Demo:
    """Return the running demo; NoDemoError when there is none."""
    try:
        return _demo(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise NoDemoError(
            "no demo is running here: start one with `make demo KEEP=1`, or name a service with --host URL --data DIR"
        ) from None
    except OSError as error:
        raise NoDemoError(f"cannot read {path}: {error}") from error
    except (TypeError, ValueError) as error:  # not JSON, not UTF-8
        raise NoDemoError(f"{path} does not describe a demo: {error}; start it again: make demo KEEP=1") from error


def _demo(found: Any) -> Demo:
    if not isinstance(found, dict):
        raise TypeError(f"expected an object, found {found!r:.40}")
    known: dict[str, Any] = {}
    for field in fields(Demo):
        value = found.get(field.name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise TypeError(f"{field.name} is not a text: {value!r:.40}")
        known[field.name] = Path(value) if field.name in _PATHS else value
    demo = Demo(**known)
    if demo.size not in DATASETS:
        raise ValueError(f"size {demo.size!r} is none of {', '.join(DATASETS)}")
    return demo


_PATHS = ("data", "socket", "scrape", "member")
