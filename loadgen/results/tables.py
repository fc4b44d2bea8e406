# SPDX-License-Identifier: BSD-2-Clause
"""The overhead table, next to the paper's figures, for a terminal and for the README.

python -m loadgen table results.json [--markdown]
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loadgen.errors import LoadgenError
from loadgen.plan import BASELINE, CONTROL, SEARCH, sessions
from loadgen.results.figures import exact

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

_TABLE = json.loads(Path(__file__).with_name("table1.json").read_text())
"""Table I of the paper; `make dashboards` writes the file from dashboards/published."""
PAPER: dict[int, dict[str, float]] = {
    row["sessionLength"]: {
        column["mode"]: value
        for column, value in zip(_TABLE["columns"], row["values"], strict=True)
        if column["quantity"] == "throughput-overhead"
    }
    for row in _TABLE["rows"]
}
"""Throughput overhead in percent by session length (0: 20,000 queries) and mode."""
_MILLISECONDS = _TABLE["cpuMillisecondsPerQuery"]

HEADINGS = (
    "queries\nper\nsession",
    "mode",
    "queries/s",
    "CPU µs\nper query",
    "CPU\noverhead",
    "throughput\noverhead",
    "paper",
)
WIDTH = 100
"""The width of tables for people, in columns."""

_BUSY = "busyCycles"
"""In the size of a measurement with the fast engine, with which Table I cannot be compared."""

_IMPRECISE, _NOISE = "†", "‡"
SATURATED = 0.95
"""The share of its core above which the load generator limits the throughput."""


class TableError(LoadgenError):
    """The file has no results for a table; the text names it."""


def rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the table's cells."""
    series = _series(results)
    return [
        (
            (_length(entry) if mode == series[0] else ""),
            mode,
            f"{entry[mode]['queriesPerSecond']['estimate']:.0f}",
            f"{entry[mode]['cpuMicrosPerQuery']['estimate']:.0f}",
            *(_share(entry[mode][field]) if mode != BASELINE else "" for field in ("cpuOverhead", "overhead")),
            _paper(results, entry, mode),
        )
        for entry in results["throughput"]
        for mode in series
    ]


def figures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the table in the form of a Benchmark's status: rows of numbers and texts, and a text for each mode."""
    found = []
    for entry in results["throughput"]:
        for mode in _series(results):
            figure = entry[mode]
            row: dict[str, Any] = {
                "sessionLength": entry["sessionLength"],
                "mode": mode,
                "queriesPerSecond": round(figure["queriesPerSecond"]["estimate"]),
                "cpuMicrosecondsPerQuery": round(figure["cpuMicrosPerQuery"]["estimate"]),
                "cpuMicrosecondsPerSession": round(figure["cpuMicrosPerSession"]["estimate"]),
            }
            if mode != BASELINE:
                row["cpuOverhead"] = _described(figure["cpuOverhead"], _percent)
                row["throughputOverhead"] = _described(figure["overhead"], _percent)
            if _paper(results, entry, mode):
                row["paper"] = _paper(results, entry, mode)
            row["figures"] = exact(results, entry, mode, _published(results, entry, mode))
            found.append(row)
    return {"rows": found, "summary": {mode: _range(results, mode) for mode in (*_enforcing(results), CONTROL)}}


def headline(results: dict[str, Any]) -> str:
    """Say in a sentence how much mode shai costs, or the last mode if shai was not measured."""
    modes = _enforcing(results)
    mode = "shai" if "shai" in modes else modes[-1]
    ends = (results["throughput"][0], results["throughput"][-1])
    shares = dict.fromkeys(
        f"{_percent(overhead['estimate'])}{_caveat(overhead)} in {sessions(entry['sessionLength'])}"
        for entry in ends
        for overhead in (entry[mode]["overhead"],)
    )
    control = results["throughput"][-1][CONTROL]["overhead"]
    equal = f" Two equal installations without enforcement differ by {_described(control, _percent)}."
    one_round = "" if any(_overheads(results, "low")) else " One round was measured: do not rely on this."
    return f"Throughput overhead of mode {mode}: {', '.join(shares)}.{one_round}{equal}"


def remarks(results: dict[str, Any]) -> list[str]:
    """Return the remarks below the table: the meaning of its marks, absolute costs, caveats."""
    judged = [str(one["message"]) for one in results.get("thresholds", ())]
    beside = _beside(results.get("beside") or {})
    return [*_legend(results), *_costs(results), *_doubts(results), *beside, *results.get("notes", ()), *judged]


def show(results: dict[str, Any], console: Console) -> None:
    """Print the table and its remarks."""
    # No frame, and one blank between columns: the rows have to fit the width.
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "mode" else "right", no_wrap=True)
    for row in rows(results):
        table.add_row(*map(escape, row), end_section=row[1] == _series(results)[-1])
    console.print(f"Sys-E, {_size(results)}", highlight=False, markup=False)
    console.print(table, "")
    for line in remarks(results):
        console.print(line, markup=False, highlight=False)


def markdown(results: dict[str, Any]) -> str:
    """Return the table and its remarks for the README."""
    lines = ["| " + " | ".join(HEADINGS).replace("\n", " ") + " |", "|" + " ---: |" * len(HEADINGS)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(results)]
    found = results["machine"]
    origin = (
        f"Measured on {found['processor']}, {found['cores']} cores, {found['system']}; {_size(results)}, "
        f"seed {results['seed']}."
    )
    return "\n".join([*lines, "", origin, "", *(f"- {line}" for line in remarks(results))]) + "\n"


def plain(results: dict[str, Any]) -> str:
    """Return the table and its remarks for a file."""
    return written(lambda console: show(results, console))


def written(show: Callable[[Console], None]) -> str:
    """Return what is shown, for a file."""
    output = io.StringIO()
    show(Console(file=output, width=WIDTH))
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def bare(*headings: str) -> Table:
    """Return a table without a frame; its first column says what the numbers in the others are, and may be wrapped."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=number > 0)
    return table


def _legend(results: dict[str, Any]) -> list[str]:
    cells = "".join("".join(row) for row in rows(results))
    lines = [] if _BUSY in results["size"] else ["paper: the throughput overhead in Table I of the paper."]
    lines += [
        "control: a second installation in mode baseline; its difference from the first cannot be told from a cost.",
    ]
    if any(_overheads(results, "low")):
        lines.append("In brackets: the interval that holds the figure with 95 % confidence.")
    else:
        lines.append("One round was measured, so there are no intervals: do not rely on these figures.")
    meanings = {
        _IMPRECISE: "imprecise: the interval is wider than the effect.",
        _NOISE: "below the noise: the interval includes zero.",
    }
    return lines + [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in cells]


def _costs(results: dict[str, Any]) -> list[str]:
    """Return the absolute cost of enforcement; the cost per query comes from the longest sessions."""
    last = results["throughput"][-1]
    lines = []
    for mode in (*_enforcing(results), CONTROL):
        query = last[mode]["addedCpuMicrosPerQuery"]
        adds = "CPU by which the control differs" if mode == CONTROL else f"CPU that mode {mode} adds"
        line = f"{adds}: {_described(query, _micros)} per query"
        if mode in results["addedPerSession"]:
            line += f", {_described(results['addedPerSession'][mode], _micros)} per session"
        lines.append(f"{line}.")
    lines += [
        f"Mode {mode} asks the monitor {found['perSession']:.2f} times per session, {found['perQuery']:.2f} per query."
        for mode, found in results["interceptions"].items()
        if mode in _enforcing(results)
    ]
    here, there = results["throughput"][0][BASELINE]["cpuMicrosPerQuery"]["estimate"] / 1000, _MILLISECONDS
    share = ": the same added cost is a larger share here" if here < there else ""
    if _BUSY in results["size"]:
        lines.append(
            f"A query takes {here:.2f} ms of CPU, {results['size'][_BUSY]} cycles of them in place of a search."
        )
    else:
        lines.append(f"A query takes {here:.2f} ms of CPU here and took about {there} ms in the paper{share}.")
    return lines


def _doubts(results: dict[str, Any]) -> list[str]:
    busiest = max(entry[mode]["driverShare"] for entry in results["throughput"] for mode in _series(results))
    if busiest <= SATURATED:
        return []
    return [f"The load generator was busy {busiest:.0%} of a slice and limited the throughput: trust the CPU columns."]


def _range(results: dict[str, Any], mode: str) -> str:
    """Return the throughput overheads of a mode from the shortest to the longest sessions."""
    estimates = [_percent(entry[mode]["overhead"]["estimate"]) for entry in results["throughput"]]
    return " … ".join(dict.fromkeys((estimates[0], estimates[-1])))


def _beside(counted: dict[str, Any]) -> Iterator[str]:
    """Say what was done beside searches."""
    support, interests = counted.get("support"), counted.get("interests")
    if support:
        times = support["milliseconds"]
        yield (
            f"Meanwhile the support read {support['read']} documents of users, each after its entry: the log has "
            f"{support['logged']} new ones, and {support['refused']} were refused. An access took "
            f"{three_digits(times['p50'])} ms (p50), {three_digits(times['p99'])} ms (p99), with a login."
        )
    if interests:
        yield (
            f"{interests['users']} users had topics made of what they searched for and opened, and saw "
            f"{interests['advertisements']} advertisements, all about their topics."
        )


def _enforcing(results: dict[str, Any]) -> list[str]:
    return [mode for mode in results["size"]["modes"] if mode != BASELINE]


def _series(results: dict[str, Any]) -> list[str]:
    return [*results["size"]["modes"], CONTROL]


def _overheads(results: dict[str, Any], end: str) -> Iterator[bool]:
    for entry in results["throughput"]:
        for mode in _series(results):
            if mode != BASELINE:
                yield entry[mode]["overhead"][end] is not None


def _size(results: dict[str, Any]) -> str:
    size = results["size"]
    parts = [f"{size[unit]} {unit}" for unit in ("documents", "users") if unit in size]
    parts.append("1 round" if size["rounds"] == 1 else f"{size['rounds']} rounds")
    if results["scenario"] != SEARCH:
        parts.append(f"scenario {results['scenario']}")
    return f"{size['name']}: {', '.join(parts)}"


def _length(entry: dict[str, Any]) -> str:
    return "unlimited" if entry["sessionLength"] == 0 else str(entry["sessionLength"])


def _published(results: dict[str, Any], entry: dict[str, Any], mode: str) -> float | None:
    """Return the paper's throughput overhead in percent, None if it has none for such a load."""
    if results["size"]["phases"] or results["size"]["mispredicted"] or _BUSY in results["size"]:
        return None
    # The paper's mode dynamic logs opens, as dynamic-lazy does.
    return PAPER.get(entry["sessionLength"], {}).get(mode.removesuffix("-lazy"))


def _paper(results: dict[str, Any], entry: dict[str, Any], mode: str) -> str:
    found = _published(results, entry, mode)
    return "" if found is None else f"{found:.2f} %"


def _share(figure: dict[str, Any]) -> str:
    """Return an overhead for the table; a mark stands for a caveat."""
    mark = _NOISE if figure["belowNoise"] else _IMPRECISE if figure["imprecise"] else ""
    return _interval(figure, _percent) + ("" if figure["low"] is None else mark)


def _interval(figure: dict[str, Any], write: Callable[[float], str]) -> str:
    text = write(figure["estimate"])
    if figure["low"] is None:
        return text
    low, high = (write(figure[end]).partition(" ")[0] for end in ("low", "high"))
    return f"{text} [{low}, {high}]"


def _described(figure: dict[str, Any], write: Callable[[float], str]) -> str:
    return _interval(figure, write) + _caveat(figure)


def _caveat(figure: dict[str, Any]) -> str:
    if figure["low"] is None:  # one round
        return ""
    if figure["belowNoise"]:
        return " (below the noise)"
    return " (imprecise)" if figure["imprecise"] else ""


def _percent(share: float) -> str:
    return f"{three_digits(share * 100)} %"


def _micros(value: float) -> str:
    return f"{three_digits(value)} µs"


def three_digits(value: float) -> str:
    """Format a number with three significant digits; more where there are no decimals. Zero has no sign."""
    size = abs(value)
    return f"{value:z.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"  # noqa: PLR2004 - rounded, powers of ten


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
        show(results, Console(width=None if sys.stdout.isatty() else WIDTH))
