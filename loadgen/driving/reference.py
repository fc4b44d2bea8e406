# SPDX-License-Identifier: BSD-2-Clause
"""Prints the load generator's metrics: name, type, labels, unit and meaning.

python -m loadgen metrics --output json
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from loadgen.driving import metrics

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--output", choices=("text", "json"), default="text")


def run(options: Namespace) -> None:
    """Print the table of all metrics."""
    if options.output == "json":
        found = [{**vars(metric), "labels": _labels(metric)} for metric in metrics.TABLE]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for metric in metrics.TABLE:
        print(f"{metric.name}  ({metric.type}, in {metric.unit})")
        print(textwrap.indent(metric.meaning, "  "))
        for name, meaning in metric.labels.items():
            print(f"    {name}: {meaning}")


def _labels(metric: metrics.Metric) -> list[dict[str, str]]:
    """Return the labels as the operator and the monitor list theirs."""
    return [{"name": name, "meaning": meaning} for name, meaning in metric.labels.items()]
