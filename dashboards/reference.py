# SPDX-License-Identifier: BSD-2-Clause
"""Writes docs/reference/metrics.md from the tables of metrics that the programs print.

python -m dashboards.reference [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "metrics.md"

_INTRODUCTION = """# Metrics

<!-- Written by python -m dashboards.reference from what the programs say of themselves; change it there. -->

The metrics of the monitor, the operator and the load generator, in Prometheus' text format and in OpenMetrics.
Histograms are classic ones: `NAME_bucket`, `NAME_sum` and `NAME_count`. A unit stands after the type; a metric without
one counts, or only carries labels. The monitor also exports Go's `go_…` and `process_…`, of the latter on FreeBSD only
`process_cpu_seconds_total`; the other two export those of Python.

Prometheus adds the labels of the target: `job`, `instance` and, by [service discovery](../operations.md#scraping),
`cluster`, `namespace`, `pool` and `member`. [Alerts](../operations.md#alerts) use these metrics, and so do the
dashboards.
"""


@dataclass(frozen=True)
class Program:
    """A program that exports metrics."""

    title: str
    about: str
    command: tuple[str, ...]
    """Prints the table as JSON."""
    variables: Mapping[str, str]
    """Variables of the command's environment."""

    def table(self) -> list[dict[str, Any]]:
        """Return the table: for each metric its name, type, labels, unit and meaning."""
        done = subprocess.run(
            self.command, cwd=ROOT, env={**os.environ, **self.variables}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"`{' '.join(self.command)}` failed: {done.stderr.strip()}")
        table: list[dict[str, Any]] = json.loads(done.stdout)
        return table


PROGRAMS = (
    Program(
        "The monitor",
        "Each member's monitor answers `GET /metrics` on its address. `shai metrics` prints this table.",
        ("go", "run", "-C", "monitor", "./cmd/shai", "metrics", "--output", "json"),
        {},
    ),
    Program(
        "The operator",
        "It answers `GET /metrics` at the address of its probes. The labels `namespace`, `pool`, `member` and\n"
        "`pipeline` are those of the objects that a metric is about ([scraping](../operations.md#scraping)). It has\n"
        "series for each object, but of a metric at most 6,000 for the objects that users make in a namespace, and\n"
        "says how many it has left out ([operations.md](../operations.md#metrics-and-probes-of-the-operator)).\n"
        "`python -m shai_operator metrics` prints this table.",
        (sys.executable, "-m", "shai_operator", "metrics", "--output", "json"),
        {"PYTHONPATH": str(ROOT / "operator")},
    ),
    Program(
        "The load generator",
        "Each process that makes load or measures answers `GET /metrics` on loopback. `python -m loadgen metrics`\n"
        "prints this table. On Kubernetes, the target's labels `cluster` and `namespace` say whose the pipeline is.",
        (sys.executable, "-m", "loadgen", "metrics", "--output", "json"),
        {},
    ),
)


def page() -> str:
    """Return the page, as Markdown."""
    return "\n".join([_INTRODUCTION, *(line for program in PROGRAMS for line in _section(program))]).rstrip() + "\n"


def _section(program: Program) -> Iterator[str]:
    yield from [f"## {program.title}", "", program.about, ""]
    yield from ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for metric in program.table():
        kind = ", ".join(filter(None, (metric["type"], metric["unit"])))
        labels = "<br>".join(f"`{label['name']}`: {_cell(label['meaning'])}" for label in metric["labels"])
        yield f"| `{metric['name']}` | {kind} | {labels} | {_cell(metric['meaning'])} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with --check say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not up to date")
    options = parser.parse_args(arguments)
    text = page()
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if options.check:
        print(f"{PAGE.relative_to(ROOT)} is not what the programs say: run make dashboards", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
