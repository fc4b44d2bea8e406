# SPDX-License-Identifier: BSD-2-Clause
"""The demo's texts: short, and within its width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demo import texts
from demo.prometheus import Server
from demo.workspace import Workspace

PLACE = Workspace(Path("/home/you/shai"), Path("/home/you/shai/out/demo"), "quick")

FOUND: dict[str, Any] = {
    "searches": {
        "query": "a title of many words, as some of the dictionary's are, and longer than most",
        "document": "/corpus/private/bob/00001234.txt",
        "alice": [{"owner": "-", "visibility": "public"}],
        "bob": [{"owner": "-", "visibility": "public"}, {"owner": "bob", "visibility": "private"}],
    },
    "leak": {
        "baseline": {"leaked": True, "withheld": 0},
        "shai": {"leaked": False, "withheld": 47},
        "audit": {
            "operation": "open",
            "conduit": "/corpus/private/bob/00001234.txt",
            "instance": "worker(alice, us)",
            "policy": 'private(owner: "bob")',
        },
        "topics": "POST /topics: expected status 200, got 403",
    },
    "support": {
        "employee": "erin",
        "read": "/corpus/private/bob/00001234.txt",
        "refused": "/corpus/private/user00123/00001234.txt",
        "outcomes": {},
    },
}


def figure(value: float, low: float | None, high: float | None) -> dict[str, Any]:
    noise = low is not None and high is not None and low <= 0 <= high
    return {"estimate": value, "low": low, "high": high, "belowNoise": noise, "imprecise": False}


def results(*overheads: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    throughput = [
        {"sessionLength": length, "shai": {"overhead": found}, "control": {"overhead": found}}
        for length, found in overheads
    ]
    return {"size": {"modes": ["baseline", "shai"]}, "throughput": throughput}


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (
            results((1, figure(0.55, 0.5, 0.6)), (8, figure(0.3, 0.2, 0.4)), (0, figure(0.0673, -0.2, 0.2))),
            "mode shai: 55.0 % in sessions of 1 query, 6.73 % (below the noise) in unlimited sessions.",
        ),
        (results((8, figure(0.3, 0.2, 0.4))), "mode shai: 30.0 % in sessions of 8 queries."),
        (
            results((1, figure(0.55, None, None))),
            "mode shai: 55.0 % in sessions of 1 query. One round was measured: do not rely on this.",
        ),
    ],
)
def test_the_end_says_what_it_cost_what_was_stopped_and_what_to_type(measured: dict[str, Any], says: str) -> None:
    lines = "\n".join(texts.conclusion(measured, FOUND, texts.next_commands(PLACE))).splitlines()
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings == ["What it cost", "What was stopped", "What to type next"]
    assert says in " ".join(" ".join(lines).split())
    assert 'policy private(owner: "bob") forbids it' in " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= texts.WIDTH


STATUS: dict[str, Any] = {
    "expected": 597000,
    "granted": 304869,
    "refused": 292127,
    "undecided": 4,
    "accesses": [
        {
            "task": "indexer",
            "access": "write",
            "conduits": "index",
            "refusedBecause": [{"policy": "index", "count": 2}, {"count": 1}],
        },
        {"task": "search", "access": "read", "conduits": "index"},
        {
            "task": "worker",
            "access": "read",
            "conduits": "documents",
            "refusedBecause": [{"policy": "private", "count": 200000}, {"policy": "friends", "count": 92124}],
        },
    ],
}


def test_of_an_analysis_the_most_frequent_reasons_are_told() -> None:
    assert texts.analysis({"metadata": {"name": "syse-0123456789ab"}, "status": STATUS}) == [
        "$ kubectl describe analysisrun syse-0123456789ab   # says in short:",
        "597,000 accesses are expected of the tasks",
        "  granted    304,869  they need no monitor",
        "  refused    292,127  policies forbid them, and are meant to",
        "             200,000  policy private, where worker reads documents",
        "              92,124  policy friends, where worker reads documents",
        "                   2  policy index, where indexer writes index",
        "  undecided        4  the monitor decides when they happen",
    ]


def test_a_task_that_cannot_do_its_work_is_warned_of() -> None:
    warned = {**STATUS, "warnings": [{"message": "worker(carol, us) may read nothing of documents: " + "why " * 30}]}
    lines = texts.analysis({"metadata": {"name": "one"}, "status": warned})[-1].splitlines()
    assert lines[0].startswith("  warning: worker(carol, us) may read nothing of documents")
    assert max(map(len, lines)) <= texts.WIDTH


def test_what_was_found_fits_the_width() -> None:
    lines = "\n".join(texts.leak(FOUND)).splitlines()
    assert max(map(len, lines)) <= texts.WIDTH
    assert any("as bob: 2 results, 1 of them private to bob" in line for line in lines)


@pytest.mark.parametrize("server", [None, Server("http://127.0.0.1:19090", 0.0)])
def test_what_runs_has_links_and_a_command_for_load(server: Server | None) -> None:
    lines = texts.links(PLACE, server)
    shown = {line.split()[0]: line.split()[-1] for line in lines if "http" in line or "file:" in line}
    assert ("Prometheus" in shown) == (server is not None)
    assert shown["report"] == "file:///home/you/shai/out/demo/report.html"
    assert ".venv/bin/locust -f loadgen/scenarios/spike.py" in lines[-1]
    assert max(map(len, lines)) <= texts.WIDTH
