# SPDX-License-Identifier: BSD-2-Clause
"""What Grafana does to the results of a panel before it draws them."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING

from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, MatcherConfig

if TYPE_CHECKING:
    from dashboards.model import Panel

_MAIN = "mainstat"
"""The field that a graph of nodes shows in them."""


def value(panel: Panel, letter: str) -> str:
    """Return the name that Grafana gives to a query's values."""
    return "Value" if len(panel.queries) == 1 else f"Value #{letter}"


def of_table(panel: Panel) -> list[DataTransformerConfig]:
    """Join the queries' rows by their labels, then name and order the columns."""
    renamed = {column.label: column.title for column in panel.columns}
    hidden = {"Time": True}
    for letter, query in zip(ascii_uppercase, panel.queries, strict=False):
        if query.legend:
            renamed[value(panel, letter)] = query.legend
        else:
            hidden[value(panel, letter)] = True
    joined = [DataTransformerConfig("merge", options={})] if len(panel.queries) > 1 else []
    return [
        *joined,
        DataTransformerConfig(
            "organize",
            options={
                "excludeByName": hidden,
                "indexByName": {name: place for place, name in enumerate(renamed)},
                "renameByName": renamed,
            },
        ),
    ]


def axis(panel: Panel) -> str:
    """Return the field with the groups of bars, as groupingToMatrix names it."""
    return f"{panel.across}\\{panel.by}"


def of_bars(panel: Panel) -> list[DataTransformerConfig]:
    """Order the groups, and make a column for each bar."""
    numbers = DataTransformerConfig(
        "convertFieldType", options={"conversions": [{"targetField": panel.across, "destinationType": "number"}]}
    )
    return [
        *([numbers] if panel.numbered else []),
        DataTransformerConfig("sortBy", options={"fields": {}, "sort": [{"field": panel.across}]}),
        DataTransformerConfig(
            "groupingToMatrix",
            options={"columnField": panel.by, "rowField": panel.across, "valueField": value(panel, "A")},
        ),
    ]


def of_flow(panel: Panel) -> list[DataTransformerConfig]:
    """Give the nodes' values the name that the panel looks for, and leave the edges without.

    It looks for names of fields and not for the names that they are shown by, so renaming does not do. Tables of
    several queries would be joined by their times into one, if they were calculated with as series. A number would be
    shown with two decimals and the name of its unit, as in "3.00 short".
    """
    nodes = MatcherConfig("byRefId", options=ascii_uppercase[0])
    return [
        DataTransformerConfig(
            "calculateField",
            filter_val=nodes,
            options={
                "mode": "reduceRow",
                "timeSeries": False,
                "reduce": {"include": [value(panel, ascii_uppercase[0])], "reducer": "sum"},
                "alias": _MAIN,
                "replaceFields": False,
            },
        ),
        DataTransformerConfig(
            "convertFieldType",
            filter_val=nodes,
            options={"conversions": [{"targetField": _MAIN, "destinationType": "string"}]},
        ),
    ]
