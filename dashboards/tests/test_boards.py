# SPDX-License-Identifier: BSD-2-Clause
"""Where panels stand, and what each of them has: checked from the JSON that Grafana gets."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest

from dashboards import colours, generate
from dashboards.boards import ALL
from dashboards.grafana.boards import document
from dashboards.model import Board, Kind

_WIDE = 24
_HEIGHTS = range(3, 15)
_NARROWEST = {"stat": 3, "timeseries": 6, "table": 8, "barchart": 8, "state-timeline": 8, "nodeGraph": 12, "text": 8}
"""In columns; at 1280 pixels one is about 50 pixels wide."""


@pytest.fixture(params=ALL, ids=lambda board: board.uid)
def board(request: pytest.FixtureRequest) -> Board:
    found: Board = request.param
    return found


def panels(board: Board) -> list[dict[str, Any]]:
    return [panel for panel in document(board)["panels"] if panel["type"] != "row"]


def test_what_is_generated_is_up_to_date() -> None:
    assert generate.write(check=True) == 0


def test_panels_fill_the_page_without_overlaps(board: Board) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in document(board)["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    lowest = max(y for _, y in taken)
    assert set(taken) == {(x, y) for x in range(_WIDE) for y in range(lowest + 1)}


def test_panels_are_large_enough_to_read(board: Board) -> None:
    for panel in panels(board):
        assert panel["gridPos"]["h"] in _HEIGHTS, panel["title"]
        assert panel["gridPos"]["w"] >= _NARROWEST[panel["type"]], panel["title"]


def test_every_panel_has_its_place_once(board: Board) -> None:
    placed = [name for row in board.rows for name, _ in row.panels]
    assert sorted(placed) == sorted(panel.id for panel in board.panels)


def test_panels_say_what_they_show(board: Board) -> None:
    for panel in board.panels:
        assert panel.title, panel.id
        assert panel.title[0].isupper() or panel.title[0] == "p", panel.title
        assert panel.kind == Kind.TEXT or panel.description.endswith("."), panel.title
        assert panel.unit, panel.title
        if panel.kind in {Kind.TIMESERIES, Kind.STATES}:
            assert all(query.legend for query in panel.queries), panel.title
        if panel.kind == Kind.TABLE:
            assert len({query.legend for query in panel.queries}) == len(panel.queries), panel.title


def test_boards_have_names_of_their_own() -> None:
    assert len({board.uid for board in ALL}) == len({board.title for board in ALL}) == len(ALL)
    assert ALL[0].title == "Overhead"


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2, from 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in bytes.fromhex(colour[1:])]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", ["#ffffff", "#181b1f"], ids=["light", "dark"])
def test_colours_stand_out_in_both_themes_of_grafana(ground: str) -> None:
    for group, known in colours.TABLE.items():
        for name, colour in known.items():
            assert contrast(colour.either, ground) >= 3, f"{group} {name} {colour.either}"


def test_modes_differ_in_colour() -> None:
    for one, other in itertools.combinations(colours.TABLE["modes"].items(), 2):
        apart = math.dist(bytes.fromhex(one[1].either[1:]), bytes.fromhex(other[1].either[1:]))
        assert apart > 35, f"{one} looks like {other}"


def test_a_mode_has_its_colour_and_not_that_of_a_longer_name(board: Board) -> None:
    for panel in panels(board):
        rules = [
            (override["matcher"]["options"].strip("/"), override["properties"][0]["value"]["fixedColor"])
            for override in panel["fieldConfig"]["overrides"]
            if override["matcher"]["id"] == "byRegexp"
        ]
        for name, colour in colours.TABLE["modes"].items():
            found = {shown for rule, shown in rules if re.search(rule, f"{name} p50")}
            assert found <= {colour.either, *(c.either for c in colours.TABLE["parts"].values())}, panel["title"]
            assert len(found) <= 1, panel["title"]
