# SPDX-License-Identifier: BSD-2-Clause
"""Every query, with a real Prometheus that has a sample of every metric in the programs' tables."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dashboards.boards import ALL
from dashboards.grafana.boards import document
from dashboards.model import Board, Kind, Panel
from dashboards.queries.selectors import SUPPLY
from dashboards.tests import synthetic
from dashboards.verifying.judgement import State, judge
from dashboards.verifying.prometheus import Prometheus, Scope
from testing import prometheus as servers

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
_SCOPE = Scope(synthetic.END, synthetic.SECONDS, 4.0 * synthetic.EVERY, synthetic.CHOSEN)
_ANY = Scope(synthetic.END, synthetic.SECONDS, 4.0 * synthetic.EVERY)
_TABLES: dict[str, list[str | Path]] = {
    "monitor": [ROOT / "build" / "bin" / "shai", "metrics", "--output", "json"],
    "operator": [sys.executable, "-m", "shai_operator", "metrics", "--output", "json"],
    "loadgen": [sys.executable, "-m", "loadgen", "metrics", "--output", "json"],
}


def table(command: list[str | Path]) -> list[dict[str, Any]]:
    environment = {"PYTHONPATH": str(ROOT / "operator")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    text = synthetic.exposition({program: table(command) for program, command in _TABLES.items()})
    with servers.running(servers.store(text, tmp_path_factory.mktemp("prometheus"))) as url:
        yield Prometheus(url)


_PANELS = [
    pytest.param(board, panel, id=f"{board.uid}-{panel.id}") for board in ALL for panel in board.panels if panel.queries
]


@pytest.mark.parametrize(("board", "panel"), _PANELS)
def test_every_query_names_metrics_and_labels_that_there_are(server: Prometheus, board: Board, panel: Panel) -> None:
    for scope in (_SCOPE, _ANY):
        verdict = judge(board, panel, server, scope)
        assert verdict.state == State.DATA, verdict.text


def shown(panel: Panel) -> list[set[str]]:
    """The labels that each query's results must have, because the panel shows them."""
    everywhere = {column.label for column in panel.columns} | ({panel.across, panel.by} - {""})
    wanted = [everywhere | set(re.findall(r"{{(\w+)}}", query.legend)) for query in panel.queries]
    if panel.kind == Kind.FLOW:
        return [{"id", "title", "subtitle"}, {"id", "source", "target"}]
    return wanted


@pytest.mark.parametrize(("board", "panel"), _PANELS)
def test_results_have_the_labels_that_the_panel_shows(server: Prometheus, board: Board, panel: Panel) -> None:
    for query, wanted in zip(panel.queries, shown(panel), strict=True):
        for series in server.over_time(query.expr, _SCOPE):
            names = {name for name, value in series.labels.items() if value}
            assert wanted <= names, f"{board.uid}: {query.expr}"


@pytest.mark.parametrize("panel", [panel for board in ALL for panel in board.panels if panel.kind == Kind.FLOW])
def test_edges_of_the_flow_graph_lead_from_node_to_node(server: Prometheus, panel: Panel) -> None:
    nodes, edges = (server.over_time(query.expr, _SCOPE) for query in panel.queries)
    known = {series.labels["id"] for series in nodes}
    assert len(known) == len(nodes)
    assert {series.labels[end] for series in edges for end in ("source", "target")} == known
    assert len({series.labels["id"] for series in edges}) == len(edges)


@pytest.mark.parametrize("variable", SUPPLY)
def test_variables_offer_values(server: Prometheus, variable: str) -> None:
    assert synthetic.CHOSEN[variable] in {
        series.labels.get(variable) for series in server.over_time(SUPPLY[variable], _SCOPE)
    }


def test_modes_are_offered_that_only_a_benchmark_had(server: Prometheus) -> None:
    assert "control" in {series.labels["mode"] for series in server.over_time(SUPPLY["mode"], _SCOPE)}


@pytest.mark.parametrize("board", ALL, ids=lambda board: board.uid)
def test_annotations_mark_something(server: Prometheus, board: Board) -> None:
    for event in board.events:
        found = server.over_time(event.expr, _SCOPE)
        assert found, event.name
        for series in found:
            assert set(re.findall(r"{{(\w+)}}", event.text)) <= set(series.labels)
    assert len(document(board)["annotations"]["list"]) == len(board.events)


def test_load_of_another_namespace_s_pipeline_of_the_same_name_is_not_shown(server: Prometheus) -> None:
    expressions = {query.expr for board in ALL for panel in board.panels for query in panel.queries}
    selectors = {found for expr in expressions for found in re.findall(r"shai_load_\w+{[^}]*}", expr)}
    assert selectors
    for selector in selectors:
        found = server.over_time(selector, _SCOPE)
        assert {(series.labels["cluster"], series.labels["namespace"]) for series in found} == {("one", "search")}


def test_a_metric_or_label_that_there_is_not_is_found(server: Prometheus) -> None:
    assert not server.over_time('shai_sessions_active{pipeline=~"$pipeline",conduit=~"$pipeline"}', _SCOPE)
    assert not server.over_time("shai_sessions_activ", _SCOPE)
    assert server.over_time('shai_sessions_active{pipeline=~"$pipeline"}', _SCOPE)


def test_counts_of_events_that_the_report_shows_are_whole() -> None:
    """The function increase() extrapolates, and the report writes what it gets."""
    (overhead,) = (board for board in ALL if board.uid == "shai-overhead")
    counts = [
        query.expr
        for panel in overhead.panels
        for query in panel.queries
        if panel.unit == "short" and "increase(" in query.expr
    ]
    assert len(counts) == 3
    assert [expr for expr in counts if "round(sum" not in expr] == []
