# SPDX-License-Identifier: BSD-2-Clause
"""What Grafana's dashboard-linter asks for, checked by own means: its module cannot be fetched everywhere."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from dashboards.boards import ALL
from dashboards.grafana.boards import document
from dashboards.model import VARIABLES, Board, Kind, variables

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_ON_TIME_RANGE_CHANGED = 2
_UNITS = {
    "short", "s", "ops", "reqps", "percentunit", "bytes", "dateTimeAsIso",
}  # fmt: skip
"""Units of Grafana that are in use."""


@pytest.fixture(params=ALL, ids=lambda board: board.uid)
def board(request: pytest.FixtureRequest) -> Board:
    found: Board = request.param
    return found


def expressions(board: Board) -> list[str]:
    return [query.expr for panel in board.panels for query in panel.queries] + [event.expr for event in board.events]


def test_the_data_source_is_chosen_by_a_variable(board: Board) -> None:
    found = document(board)
    source, *others = found["templating"]["list"]
    assert (source["name"], source["label"], source["type"]) == ("datasource", "Data source", "datasource")
    assert source["query"] == "prometheus"
    panels = [panel for panel in found["panels"] if panel["type"] != "row"]
    targets = [target for panel in panels for target in panel.get("targets", ())]
    for user in (*others, *panels, *targets, *found["annotations"]["list"]):
        assert user["datasource"] == _SOURCE, user


def test_variables_are_asked_for_again_with_the_range(board: Board) -> None:
    found = document(board)["templating"]["list"][1:]
    assert [variable["name"] for variable in found] == list(VARIABLES)
    for variable in found:
        assert variable["refresh"] == _ON_TIME_RANGE_CHANGED
        assert re.fullmatch(r"label_values\(.+, \w+\)", variable["query"])
        assert variable["multi"]
        assert variable["allValue"] == ".*"  # a monitor outside of Kubernetes has no namespace
        used = any(variable["name"] in variables(panel) for panel in board.panels)
        assert (variable["hide"] == 0) == used, variable["name"]


def test_variables_are_matched_by_regular_expressions(board: Board) -> None:
    """Several values of a variable make a regular expression; Grafana escapes each of them."""
    for expr in expressions(board):
        for name in VARIABLES:
            assert expr.count(f"${name}") == expr.count(f'{name}=~"${name}"'), expr


def test_rates_are_over_the_interval_that_fits_the_scrapes(board: Board) -> None:
    for expr in expressions(board):
        over = re.findall(r"(\w+)\([^()\[\]]*\[([^\]]*)\]", expr)
        assert len(over) == expr.count("["), expr
        for function, interval in over:
            assert (function, interval) in {
                ("rate", "$__rate_interval"),
                ("increase", "$__rate_interval"),
                ("increase", "$__range"),
                ("max_over_time", "$__range"),
            }, expr


def test_counters_are_shown_as_rates_or_increases(board: Board) -> None:
    """Or as the highest value of those that begin at 0 in the range, without what they had at its beginning."""
    metric = r"\w+(?:_total|_bucket|_count){[^{}]*}"
    last = rf"max_over_time\({metric}\[\$__range\]\)"
    for expr in expressions(board):
        ranges = re.findall(rf"(?:rate|increase)\({metric}\[", expr)
        counted = rf"sum\({last} - \({metric} offset \$__range\) or {last}\)"
        if re.fullmatch(rf"{counted}(?: / {counted})?", expr):
            ranges = re.findall(metric, expr)
        assert len(ranges) == len(re.findall(r"\w(?:_total|_bucket|_count)\b", expr)), expr


def test_results_are_sorted_last(board: Board) -> None:
    """Prometheus loses the order of what it computes with."""
    for expr in expressions(board):
        _, sort, inner = expr.partition("sort_desc")
        if not sort:
            continue
        assert expr.startswith(sort), expr
        open_brackets = list(itertools.accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in inner))
        assert open_brackets.index(0) == len(inner) - 1, expr


def test_every_panel_has_queries_and_a_unit(board: Board) -> None:
    for panel in document(board)["panels"]:
        if panel["type"] in {"row", "text"}:
            continue
        assert panel["targets"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in _UNITS, panel["title"]
        assert panel["title"], panel["id"]
        assert panel["description"], panel["title"]
        for override in panel["fieldConfig"]["overrides"]:
            for rule in override["properties"]:
                assert rule["id"] != "unit" or rule["value"] in _UNITS, panel["title"]


def test_thresholds_begin_below_everything(board: Board) -> None:
    for panel in document(board)["panels"]:
        steps = panel.get("fieldConfig", {}).get("defaults", {}).get("thresholds", {}).get("steps", [])
        assert [step["value"] for step in steps] == sorted(
            (step["value"] for step in steps), key=lambda value: (value is not None, value)
        ), panel["title"]
        assert not steps or steps[0]["value"] is None, panel["title"]


def test_boards_cannot_be_edited_in_place(board: Board) -> None:
    assert document(board)["editable"] is False


def links(found: dict[str, Any]) -> list[str]:
    """The addresses that panels and values in tables link to."""
    return [link["url"] for panel in found["panels"] for link in panel.get("links", ())] + [
        link["url"]
        for panel in found["panels"]
        for override in panel.get("fieldConfig", {}).get("overrides", ())
        for rule in override["properties"]
        if rule["id"] == "links"
        for link in rule["value"]
    ]


def test_links_lead_to_boards_that_there_are(board: Board) -> None:
    for url in links(document(board)):
        target, _, query = url.partition("?")
        assert target.removeprefix("/d/") in {other.uid for other in ALL}, url
        chosen = re.findall(r"var-(\w+)=\$\{__data\.fields", query)
        kept = re.findall(r"\$\{(\w+):queryparam\}", query)
        assert "${__url_time_range}" in query, url
        assert "${__all_variables}" in query or sorted(chosen + kept) == sorted(("datasource", *VARIABLES)), url


def test_every_board_is_reached_from_every_other() -> None:
    for board in ALL:
        found = document(board)
        (link,) = found["links"]
        assert (link["type"], link["tags"], link["includeVars"], link["keepTime"]) == (
            "dashboards",
            ["shai"],
            True,
            True,
        )
        assert "shai" in found["tags"]
    assert any(links(document(board)) for board in ALL)


def test_tables_link_only_labels_that_are_variables(board: Board) -> None:
    for panel in board.panels:
        for column in panel.columns:
            assert not column.board or column.label in VARIABLES, panel.id


def test_values_of_tables_have_the_names_that_grafana_gives() -> None:
    """With one query Grafana calls its values Value, with several Value #A, Value #B and so on."""
    for board in ALL:
        places = {panel["title"]: panel for panel in document(board)["panels"]}
        for panel in board.panels:
            if panel.kind != Kind.TABLE:
                continue
            (organize,) = [t for t in places[panel.title]["transformations"] if t["id"] == "organize"]
            renamed, hidden = organize["options"]["renameByName"], organize["options"]["excludeByName"]
            letters = [target["refId"] for target in places[panel.title]["targets"]]
            values = ["Value"] if len(letters) == 1 else [f"Value #{letter}" for letter in letters]
            assert [renamed.get(value, "") for value in values] == [query.legend for query in panel.queries]
            assert [value for value in values if value in hidden] == [value for value in values if value not in renamed]


def test_what_always_is_1_is_no_column() -> None:
    """The labels of a metric such as shai_rollout_info say everything."""
    for board in ALL:
        for panel in board.panels:
            for query in panel.queries:
                says = re.fullmatch(r"max by \([^()]*\) \(shai_\w+_info{[^{}]*}\)", query.expr)
                assert panel.kind != Kind.TABLE or not says or not query.legend, panel.id


def test_what_is_wrong_stands_out() -> None:
    """A member that is not ready is red in its table; where an alert has a limit in time, the limit is a line."""
    panels = {panel["title"]: panel for board in ALL for panel in document(board)["panels"]}
    members = panels["Members"]["fieldConfig"]
    (mapped,) = members["defaults"]["mappings"]
    assert mapped["options"]["0"]["text"] == "not ready"
    (state,) = [override for override in members["overrides"] if override["matcher"]["options"] == "state"]
    assert {"id": "custom.cellOptions", "value": {"type": "color-text"}} in state["properties"]
    for title, seconds in {"Time of a revocation": 10, "Age of fetched facts": 900}.items():
        found = panels[title]["fieldConfig"]["defaults"]
        assert found["custom"]["thresholdsStyle"] == {"mode": "dashed"}
        assert found["thresholds"]["steps"][-1]["value"] == seconds
        assert found["color"]["mode"] == "palette-classic-by-name"


def test_nodes_have_texts_and_edges_have_none() -> None:
    """The panel shows a number as "3.00 short"; and calculating joins the two tables into one, but for one query."""
    (flow,) = [panel for board in ALL for panel in document(board)["panels"] if panel["type"] == "nodeGraph"]
    assert [target["refId"] for target in flow["targets"]] == ["A", "B"]
    calculated, converted = flow["transformations"]
    assert calculated["options"]["reduce"]["include"] == ["Value #A"]
    assert calculated["options"]["timeSeries"] is False
    assert converted["options"]["conversions"] == [{"targetField": "mainstat", "destinationType": "string"}]
    for transformation in (calculated, converted):
        assert transformation["filter"] == {"id": "byRefId", "options": "A"}
