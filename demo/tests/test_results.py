# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a run, and what is said when it cannot be made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from demo import results
from demo.prometheus import Server
from demo.workspace import Workspace

if TYPE_CHECKING:
    from demo.kubernetes import Cluster

SERVER = Server("http://127.0.0.1:1", 0.0)


class FakeCluster:
    """A cluster without objects."""

    def run(self, *_: str) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": []})


CLUSTER = cast("Cluster", FakeCluster())


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """Make a workspace, in whose checkout programs can be put."""
    made = Workspace(tmp_path / "checkout", tmp_path / "out", "smoke")
    made.shai.parent.mkdir(parents=True)
    made.logs.mkdir(parents=True)
    return made


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("server", [None, SERVER])
def test_the_report_is_made_of_this_run(place: Workspace, server: Server | None) -> None:
    program(place.shai, 'shift; umask 077; ls "$1" > "$3"; echo "$@" >> "$3"')
    place.results.mkdir()
    (place.results / "old.json").touch()
    results.write(place, CLUSTER, {"leak": {}}, server)
    assert place.report.stat().st_mode & 0o777 == 0o644
    text = place.report.read_text()
    assert text.startswith("leak.json\nobjects.json\n")
    given = f"--prometheus {SERVER.url} --from 1970-01-01T00:00:00+00:00 --scrape-interval 5s"
    assert text.rstrip().endswith(given if server else str(place.report))


def test_a_report_that_fails_says_why(place: Workspace) -> None:
    program(place.shai, "echo no ink >&2; exit 1")
    with pytest.raises(results.ResultsError, match=r"`shai report` failed: no ink"):
        results.write(place, CLUSTER, {}, None)


def verdicts(place: Workspace, *states: str) -> None:
    """Let the dashboards' command say these states of panels."""
    found = [
        {"board": "b", "panel": f"p{at}", "state": state, "good": state == "data"} for at, state in enumerate(states)
    ]
    folder = place.root / "dashboards"
    folder.mkdir()
    (folder / "__init__.py").touch()  # else the checkout's package, which the environment knows, comes first
    (folder / "__main__.py").write_text(f"print({json.dumps(found)!r})\n")


def test_panels_with_data_are_counted(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    verdicts(place, "data", "data")
    assert results.verify_panels(place, SERVER) == "2 of 2 panels of the dashboards have data"


@pytest.mark.parametrize("ci", ["", "true"])
def test_panels_without_data_are_an_error_in_ci_only(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    verdicts(place, "data", "nothing")
    if not ci:
        assert results.verify_panels(place, SERVER) == "1 of 2 panels of the dashboards have data"
        return
    with pytest.raises(results.ResultsError, match=rf"panels without data: b/p1; {place.logs}/panels.json"):
        results.verify_panels(place, SERVER)


def test_a_prometheus_that_does_not_answer_is_said_so(place: Workspace) -> None:
    real = Workspace(Path(__file__).resolve().parents[2], place.output, "smoke")
    with pytest.raises(results.ResultsError, match=r"verify --prometheus http://127.0.0.1:1 .* failed: error: .+"):
        results.verify_panels(real, SERVER)
