# SPDX-License-Identifier: BSD-2-Clause
"""One panel in Grafana's JSON."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import (
    barchart,
    common,
    dashboard,
    nodegraph,
    prometheus,
    stat,
    statetimeline,
    text,
    timeseries,
)
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

from dashboards import colours
from dashboards.grafana import transformations
from dashboards.model import VARIABLES, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from dashboards.model import Panel, Query

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

Builder = (
    barchart.Panel | nodegraph.Panel | stat.Panel | statetimeline.Panel | tables.Panel | text.Panel | timeseries.Panel
)


def target(panel: Panel, query: Query, letter: str) -> prometheus.Dataquery:
    """Return a query as Grafana sends it."""
    made = prometheus.Dataquery().expr(query.expr).ref_id(letter).datasource(SOURCE)
    if panel.kind in {Kind.TABLE, Kind.BAR, Kind.FLOW}:
        return made.instant().format(PromQueryFormat.TABLE).legend_format("")
    made = made.legend_format(query.legend).format(PromQueryFormat.TIME_SERIES)
    return made.instant() if panel.kind.instant else made.range()


def _timeseries(panel: Panel) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(35 if panel.stacked else 8)
        .show_points(options.VisibilityMode.NEVER)
        .axis_soft_min(0)
        .legend(
            common.VizLegendOptions()
            .display_mode(options.LegendDisplayMode.TABLE)
            .placement(options.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "mean", "max"])
            .show_legend(True)  # noqa: FBT003, the library's way
        )
        .tooltip(common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING))
    )
    if panel.stacked:
        made.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))
    if panel.limits:
        made.thresholds_style(common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED))
    return made


def _text_mode(panel: Panel) -> options.BigValueTextMode:
    if panel.kind == Kind.NAMES:
        return options.BigValueTextMode.NAME
    return options.BigValueTextMode.VALUE_AND_NAME if panel.colours else options.BigValueTextMode.VALUE


def _stat(panel: Panel) -> stat.Panel:
    return (
        stat.Panel()
        .graph_mode(options.BigValueGraphMode.NONE)
        .color_mode(options.BigValueColorMode.VALUE if panel.limits else options.BigValueColorMode.BACKGROUND_SOLID)
        .text_mode(_text_mode(panel))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _table(panel: Panel) -> tables.Panel:
    made = tables.Panel().show_header(True).filterable(True)  # noqa: FBT003, the library's way
    for transformation in transformations.of_table(panel):
        made.with_transformation(transformation)
    for column in panel.columns:
        if column.board:
            link = {"title": f"{column.title} in {column.board}", "url": column_link(column.board, column.label)}
            made.override_by_name(column.title, [models.DynamicConfigValue("links", [link])])
    for query in panel.queries:
        changed = []
        if query.unit and query.unit != panel.unit:
            changed.append(models.DynamicConfigValue("unit", query.unit))
        if panel.states or panel.limits:
            changed.append(models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
        if changed:
            made.override_by_name(query.legend, changed)
    return made


def _bar(panel: Panel) -> barchart.Panel:
    made = (
        barchart.Panel()
        .x_field(transformations.axis(panel))
        .group_width(0.8)
        .show_value(options.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(options.LegendDisplayMode.LIST)
            .placement(options.LegendPlacement.BOTTOM)
            .show_legend(True)  # noqa: FBT003, the library's way
        )
    )
    for transformation in transformations.of_bars(panel):
        made.with_transformation(transformation)
    return made


def _states(panel: Panel) -> statetimeline.Panel:
    del panel
    return statetimeline.Panel().merge_values(True).row_height(0.8)  # noqa: FBT003, the library's way


def _flow(panel: Panel) -> nodegraph.Panel:
    made = nodegraph.Panel()
    for transformation in transformations.of_flow(panel):
        made.with_transformation(transformation)
    return made


def _text(panel: Panel) -> text.Panel:
    return text.Panel().mode(TextMode.MARKDOWN).content(panel.description)


_BUILDERS: dict[Kind, Callable[[Panel], Builder]] = {
    Kind.TIMESERIES: _timeseries,
    Kind.STAT: _stat,
    Kind.NAMES: _stat,
    Kind.TEXT: _text,
    Kind.TABLE: _table,
    Kind.BAR: _bar,
    Kind.STATES: _states,
    Kind.FLOW: _flow,
}


def column_link(board: str, label: str) -> str:
    """Return a link to a board for the clicked row's value, and the same range and choices otherwise."""
    kept = "&".join(f"${{{name}:queryparam}}" for name in ("datasource", *VARIABLES) if name != label)
    return f"/d/shai-{board}?${{__url_time_range}}&var-{label}=${{__data.fields.{label}}}&{kept}"


def panel_link(board: str) -> dashboard.DashboardLink:
    """Return a link to a board for the same range and choices."""
    return dashboard.DashboardLink(f"More: {board}").url(f"/d/shai-{board}?${{__url_time_range}}&${{__all_variables}}")


def _level(name: str) -> str:
    return colours.TABLE["levels"][name].either


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    first, *others = panel.limits
    steps = [models.Threshold(None, _level(first.level))]
    steps += [models.Threshold(limit.value, _level(limit.level)) for limit in others]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _colour(made: Builder, panel: Panel) -> None:
    """Give each known result its colour, whatever its place among the others."""
    if not panel.colours:
        levels = panel.limits and panel.kind != Kind.TIMESERIES
        made.color_scheme(
            dashboard.FieldColor().mode(
                models.FieldColorModeId.THRESHOLDS if levels else models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME
            )
        )
        return
    for value, known in colours.TABLE[panel.colours].items():
        fixed = {"mode": "fixed", "fixedColor": known.either}
        # dynamic is not the beginning of dynamic-lazy:
        made.override_by_regexp(rf"/^{re.escape(value)}(?![\w-])/", [models.DynamicConfigValue("color", fixed)])


def build(panel: Panel, number: int, place: models.GridPos) -> Builder:
    """Return a panel at its place."""
    made = _BUILDERS[panel.kind](panel)
    made.id(number).title(panel.title).description(panel.description).datasource(SOURCE).grid_pos(place)
    made.unit(panel.unit).no_value("no data in this range")
    for letter, query in zip(ascii_uppercase, panel.queries, strict=False):
        made.with_target(target(panel, query, letter))
    if panel.more:
        made.links([panel_link(panel.more)])
    if panel.limits:
        made.thresholds(_thresholds(panel))
    if panel.decimals is not None:
        made.decimals(panel.decimals)
    if panel.states:
        shown = {
            number: models.ValueMappingResult(text=text, color=_level(level), index=position)
            for position, (number, text, level) in enumerate(panel.states)
        }
        made.mappings([models.ValueMap(options=shown)])
    _colour(made, panel)
    return made
