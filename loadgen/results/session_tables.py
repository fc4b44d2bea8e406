# SPDX-License-Identifier: BSD-2-Clause
"""The tables of a session.json, and what has to be known to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.results.sessions import SHAI
from loadgen.results.tables import SATURATED, bare, three_digits, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

_NOTHING = "-"


def plain(results: Mapping[str, Any]) -> str:
    """Return the tables for a file."""
    return written(lambda console: show(results, console))


def show(results: Mapping[str, Any], console: Console) -> None:
    """Print the tables and what has to be known to read them."""
    console.print(_headline(results), markup=False, highlight=False)
    for table in (_figures(results), _series(results), _processes(results)):
        console.print(table, "")
    for line in remarks(results):
        console.print(line, markup=False, highlight=False)


def _headline(results: Mapping[str, Any]) -> str:
    size, found = results["size"], results["machine"]
    rounds = "1 round" if size["rounds"] == 1 else f"{size['rounds']} rounds"
    return f"Sessions on {found['processor']}, {found['cores']} cores, {found['system']}; {rounds}, seed {size['seed']}"


_FIGURES = (
    ("added_cpu_us_per_session", "mode shai adds to a session, its login's verification included"),
    ("isolating_cpu_us_per_session_rolled_back", "  of which isolating: a worker that is rolled back"),
    ("added_cpu_us_per_session_process", "the same with a process for each session"),
    ("isolating_cpu_us_per_session", "  of which isolating: a process for each session"),
    ("deciding_cpu_us_per_session", "of both, confining and deciding, the verification included"),
    ("ed25519_cpu_us_per_session", "  of which the verification (Ed25519)"),
    ("control_us_per_session", "two equal baselines differ by, per session"),
    ("added_cpu_us_per_query", "mode shai adds to a query"),
    ("control_us_per_query", "two equal baselines differ by, per query"),
    ("cpu_us_per_interception", "an interception whose answer is prepared adds to an open"),
    ("cpu_us_per_interception_dynamic", "an interception in mode dynamic, evaluated each time"),
    ("cpu_us_per_interception_dynamic_lazy", "an interception in mode dynamic-lazy, evaluated at the write"),
)


def _figures(results: Mapping[str, Any]) -> Table:
    table = bare("CPU time", "µs", "95 % interval")
    for name, about in _FIGURES:
        table.add_row(about, three_digits(results[name]["value"]), _interval(results[name]))
    return table


_KINDS = {"faults": "minor page\nfaults", "switches": "context\nswitches", "syscalls": "system\ncalls"}


def _series(results: Mapping[str, Any]) -> Table:
    table = bare("a session that only logs in", *_KINDS.values(), "sessions\nper second", "95 % interval")
    for name, rate in results["sessions_per_second"].items():
        counted = (three_digits(results[kind][name]) if name in results[kind] else _NOTHING for kind in _KINDS)
        table.add_row(name, *counted, three_digits(rate["value"]), _interval(rate))
    return table


def _processes(results: Mapping[str, Any]) -> Table:
    own = {name: found["cpu_us_per_session"] for name, found in results["by_process"].items()}
    table = bare("CPU µs of such a session, by process", *own[SHAI])
    for name, found in own.items():
        table.add_row(name, *(three_digits(found.get(process, 0.0)) for process in own[SHAI]))
    return table


def remarks(results: Mapping[str, Any]) -> list[str]:
    """Return what has to be known to read the tables."""
    lines = [
        "baseline: the front end verifies logins itself, and serves everybody from the same processes.",
        "control: a second baseline, equal to the first. forked: baseline with a process for each session.",
        "shai, dynamic, dynamic-lazy: workers are rolled back after a session.",
        "process: shai with a process for each session.",
        "worker, search: the task with its processes, ended ones too.",
        "System calls are those that were carried out, not those that the monitor answered.",
    ]
    if results["unsealed"] is not None:
        lines.append(f"Workers of shai were not rolled back: {results['unsealed']}")
    if results["size"]["rounds"] == 1:
        lines.append("One round was measured, so there are no intervals: do not rely on these figures.")
    busy = [series for series, share in results["driver_share"].items() if share > SATURATED]
    if busy:
        lines.append(f"The load generator limited the sessions per second of {', '.join(busy)}: they can be more.")
    if results["beside"] is not None:
        lines += _beside(results["beside"])
    for name, workers in (("live", "workers that are rolled back"), ("live_process", "a process for each session")):
        if results[name] is not None:
            lines += [f"With {workers}:", *(f"  {line}" for line in _live(results[name]))]
    return lines


def _beside(beside: Mapping[str, Any]) -> list[str]:
    ratio, saved = beside["sessions_per_second_ratio"], beside["saved_cpu_us_per_session"]
    return [
        f"beside: mode shai of {beside['commit']}, another checkout.",
        f"  This one serves {three_digits(ratio['value'])} times its sessions per second ({_interval(ratio)}).",
        f"  A session takes {three_digits(saved['value'])} µs of CPU time less ({_interval(saved)}).",
    ]


def _live(live: Mapping[str, Any]) -> list[str]:
    if live["live"] == 0:
        return [f"No live session could be held: {live['limit']}"]
    pipelines = f"{live['pipelines']} pipeline" + "s" * (live["pipelines"] != 1)
    held = f"{live['live']} live idle sessions in {pipelines}"
    ended = f"{live['revoked']} of them revoked at once: {live['revoked_ms']:.1f} ms to the end of the last one"
    lines = [
        f"{held}, {live['memory_kib_per_session']} KiB of memory per session.",
        f"{ended} (the monitor's answer came after {live['answered_ms']:.1f} ms).",
    ]
    return lines if live["limit"] is None else [*lines, f"There are not {live['wanted']}: {live['limit']}"]


def _interval(found: Mapping[str, float | None]) -> str:
    low, high = found["low"], found["high"]
    return _NOTHING if low is None or high is None else f"{three_digits(low)} … {three_digits(high)}"
