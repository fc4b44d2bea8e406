# SPDX-License-Identifier: BSD-2-Clause
"""The overhead table beside the paper's figures, for a terminal and for the README.

python -m loadgen table results.json [--markdown]
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loadgen.errors import LoadgenError
from loadgen.plan import BASELINE

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

PAPER = {
    # Table I of the paper: throughput overhead in percent by session length (0: 20k queries).
    1: {"dynamic": 7.21, "shai": 4.74},
    2: {"dynamic": 4.97, "shai": 2.64},
    4: {"dynamic": 3.76, "shai": 1.25},
    8: {"dynamic": 3.00, "shai": 0.45},
    16: {"dynamic": 2.95, "shai": 0.10},
    32: {"dynamic": 2.77, "shai": 0.10},
    0: {"dynamic": 2.52, "shai": 0.02},
}
PAPER_MILLISECONDS_PER_QUERY = 77
"""CPU time of a query in the paper: 24 cores, about 310 queries a second."""

HEADINGS = (
    "queries per session",
    "mode",
    "queries/s",
    "CPU µs/query",
    "CPU µs/session",
    "CPU overhead [95 %]",
    "throughput overhead [95 %]",
    "paper",
)
_SATURATED = 0.95
_FILE_WIDTH = 180


class TableError(LoadgenError):
    """There is nothing to make a table of; the text names the file."""


def rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the table's cells; an effect that its interval swallows says so."""
    found: list[tuple[str, ...]] = []
    for entry in results["throughput"]:
        length = entry["sessionLength"]
        for mode in results["size"]["modes"]:
            figures = entry[mode]
            paper = PAPER.get(length, {}).get(mode)
            found.append(
                (
                    ("unlimited" if length == 0 else str(length)) if mode == results["size"]["modes"][0] else "",
                    mode,
                    f"{figures['queriesPerSecond']['estimate']:.0f}",
                    f"{figures['cpuMicrosPerQuery']['estimate']:.0f}",
                    f"{figures['cpuMicrosPerSession']['estimate']:.0f}",
                    percent(figures["cpuOverhead"]) if "cpuOverhead" in figures else "",
                    percent(figures["overhead"]) if "overhead" in figures else "",
                    f"{paper:.2f} %" if paper is not None else "",
                )
            )
    return found


def figures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the table as a Benchmark's status has it: rows of numbers and texts, and a line for each mode."""
    found = []
    for entry in results["throughput"]:
        length = entry["sessionLength"]
        for mode in results["size"]["modes"]:
            it = entry[mode]
            row: dict[str, Any] = {
                "sessionLength": length,
                "mode": mode,
                "queriesPerSecond": round(it["queriesPerSecond"]["estimate"]),
                "cpuMicrosecondsPerQuery": round(it["cpuMicrosPerQuery"]["estimate"]),
                "cpuMicrosecondsPerSession": round(it["cpuMicrosPerSession"]["estimate"]),
            }
            if mode != BASELINE:
                row["cpuOverhead"] = percent(it["cpuOverhead"])
                row["throughputOverhead"] = percent(it["overhead"])
            if mode in PAPER.get(length, {}):
                row["paper"] = f"{PAPER[length][mode]:.2f} %"
            found.append(row)
    return {"rows": found, "summary": {mode: _line(results, mode) for mode in _enforcing(results)}}


def _line(results: dict[str, Any], mode: str) -> str:
    """Write the throughput overheads of a mode by length of sessions, each with half of its interval."""
    parts = []
    for entry in results["throughput"]:
        it = entry[mode]["overhead"]
        margin = "" if it["low"] is None else f"±{(it['high'] - it['low']) * 50:.1f}"
        parts.append(f"{entry['sessionLength'] or '∞'}: {it['estimate'] * 100:.1f}{margin} %")
    return " · ".join(parts)


def _enforcing(results: dict[str, Any]) -> list[str]:
    return [mode for mode in results["size"]["modes"] if mode != BASELINE]


def _size(results: dict[str, Any]) -> str:
    size = results["size"]
    parts = [f"{size[what]} {what}" for what in ("documents", "users", "rounds") if what in size]
    return f"{size['name']}: {', '.join(parts)}"


def percent(figure: dict[str, Any]) -> str:
    """Write an overhead with its interval, and whether it is below the noise."""
    text = f"{figure['estimate'] * 100:.2f} %"
    if figure["low"] is None:
        return f"{text} [one round: no interval]"
    text += f" [{figure['low'] * 100:.2f}, {figure['high'] * 100:.2f}]"
    return text + _caveat(figure)


def micros(figure: dict[str, Any]) -> str:
    """Write a cost in microseconds with its interval, and whether it is below the noise."""
    text = f"{figure['estimate']:.1f} µs"
    if figure["low"] is None:
        return f"{text} [one round: no interval]"
    text += f" [{figure['low']:.1f}, {figure['high']:.1f}]"
    return text + _caveat(figure)


def _caveat(figure: dict[str, Any]) -> str:
    if figure["belowNoise"]:
        return " below the noise"
    return " imprecise" if figure["imprecise"] else ""


def remarks(results: dict[str, Any]) -> list[str]:
    """Return what belongs below the table: absolute costs, interceptions, caveats."""
    last = results["throughput"][-1]
    lines = []
    for mode in _enforcing(results):
        added = micros(last[mode]["addedCpuMicrosPerQuery"])
        line = f"CPU added by mode {mode}: {added} per query in the longest sessions"
        if mode in results["addedPerSession"]:
            line += f", {micros(results['addedPerSession'][mode])} per session"
        lines.append(line)
    lines += [
        f"Monitor involved in mode {mode}: {found['perSession']:.2f} per session, {found['perQuery']:.2f} per query"
        for mode, found in results["interceptions"].items()
        if mode != BASELINE
    ]
    base = results["throughput"][0][BASELINE]["cpuMicrosPerQuery"]["estimate"]
    lines.append(
        f"A query cost the paper about {PAPER_MILLISECONDS_PER_QUERY} ms of CPU, here {base / 1000:.2f} ms: the same "
        "added cost weighs more here, so compare the absolute figures too."
    )
    shares = [entry[mode]["driverShare"] for entry in results["throughput"] for mode in results["size"]["modes"]]
    if max(shares) > _SATURATED:
        lines.append(
            f"The load generator was busy {max(shares):.0%} of a slice: throughput is its limit, not the system's; "
            "trust the CPU columns."
        )
    return lines


def show(results: dict[str, Any], console: Console) -> None:
    """Print the table and its remarks."""
    table = Table(title=f"Sys-E, {_size(results)}")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    for row in rows(results):
        table.add_row(*map(escape, row), end_section=row[1] == results["size"]["modes"][-1])
    console.print(table)
    for line in remarks(results):
        console.print(line, markup=False, highlight=False)


def markdown(results: dict[str, Any]) -> str:
    """Return the table and its remarks for the README."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + " ---: |" * len(HEADINGS)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(results)]
    found = results["machine"]
    origin = (
        f"Measured on {found['processor']}, {found['cores']} cores, {found['system']}; {_size(results)}, "
        f"seed {results['seed']}."
    )
    return "\n".join([*lines, "", origin, "", *(f"- {line}" for line in remarks(results))]) + "\n"


def plain(results: dict[str, Any]) -> str:
    """Return the table and its remarks for a file."""
    output = io.StringIO()
    show(results, Console(file=output, width=_FILE_WIDTH))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("results", type=Path, metavar="results.json", help="what a benchmark has written")
    parser.add_argument("--markdown", action="store_true", help="as the README shows it")


def run(options: Namespace) -> None:
    """Print the table of a results.json; TableError when there is none."""
    try:
        results = json.loads(options.results.read_text())
    except (OSError, ValueError) as error:
        raise TableError(f"cannot read {options.results}: {error}; `python -m loadgen benchmark` writes it") from error
    if options.markdown:
        print(markdown(results), end="")
    else:
        show(results, Console())
