# SPDX-License-Identifier: BSD-2-Clause
"""One board in Grafana's JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from dashboards import colours
from dashboards.grafana.panels import SOURCE, build
from dashboards.model import VARIABLES, variables
from dashboards.queries.selectors import SUPPLY

if TYPE_CHECKING:
    from dashboards.model import Board, Event

TAG = "shai"
COLUMNS = 24
_ALL = "$__all"


def _source() -> dashboard.DatasourceVariable:
    chosen = models.VariableOption(selected=False, text="default", value="default")
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus").current(chosen)


def _variable(name: str, *, shown: bool) -> dashboard.QueryVariable:
    """Return a choice; one that no panel of the board uses is hidden, so that links keep it."""
    everything = models.VariableOption(selected=True, text="All", value=_ALL)
    return (
        dashboard.QueryVariable(name)
        .label(name.capitalize())
        .datasource(SOURCE)
        .query(f"label_values({SUPPLY[name]}, {name})")
        .multi(True)  # noqa: FBT003, the library's way
        .include_all(True)  # noqa: FBT003, the library's way
        .all_value(".*")
        .current(everything)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .hide(models.VariableHide.DONT_HIDE if shown else models.VariableHide.HIDE_VARIABLE)
    )


def _event(event: Event) -> dict[str, object]:
    """Return an annotation; the library has none of Prometheus' options."""
    return {
        "name": event.name,
        "datasource": SOURCE.to_json(),
        "enable": True,
        "hide": False,
        "iconColor": colours.TABLE["levels"][event.level].either,
        "expr": event.expr,
        "titleFormat": event.name,
        "textFormat": event.text,
        "useValueForTime": "on" if event.at_value else False,
    }


def _link() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Shai")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(False)  # noqa: FBT003, the library's way
        .include_vars(True)  # noqa: FBT003, the library's way
        .keep_time(True)  # noqa: FBT003, the library's way
        .icon("external link")
    )


def _place(made: dashboard.Dashboard, board: Board) -> None:
    """Add the panels, row by row."""
    known = {panel.id: panel for panel in board.panels}
    number = y = 0
    for row in board.rows:
        if row.heading:
            number += 1
            made.with_row(dashboard.Row(row.heading).id(number).grid_pos(models.GridPos(h=1, w=COLUMNS, x=0, y=y)))
            y += 1
        x = 0
        for name, width in row.panels:
            number += 1
            made.with_panel(build(known[name], number, models.GridPos(h=row.height, w=width, x=x, y=y)))
            x += width
        y += row.height


def document(board: Board) -> dict[str, Any]:
    """Return a board as Grafana imports it."""
    used = {name for panel in board.panels for name in variables(panel)}
    made = (
        dashboard.Dashboard(f"Shai / {board.title}")
        .uid(board.uid)
        .description(board.question)
        .tags([TAG])
        .readonly()
        .time(board.range, "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(_link())
        .with_variable(_source())
    )
    for name in VARIABLES:
        made.with_variable(_variable(name, shown=name in used))
    _place(made, board)
    shown: dict[str, Any] = json.loads(json.dumps(made.build(), cls=JSONEncoder))
    shown["annotations"] = {"list": [_event(event) for event in board.events]}
    return shown
