# SPDX-License-Identifier: BSD-2-Clause
"""The command line: python -m testing.analysing --help."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from testing.analysing.chart import picture
from testing.analysing.points import GRIDS, Measurement, Point
from testing.analysing.report import summary
from testing.cluster import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGE = ROOT / "monitor" / "internal" / "analysis"  # its policies are found from there
_PROGRAM = ROOT / "build" / "bench" / "analysis.test"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and store the results."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the program is ended, and its files are removed
    before = _measured(options.report, options.size) if options.resume else {}
    if not before.keys() >= set(GRIDS[options.size]):
        _build()
    found = []
    for point in GRIDS[options.size]:
        if point in before:
            found.append(before[point])
            continue
        print(f"measuring {point}", file=sys.stderr, flush=True)
        found.append(_measure(point, options.naive))
        options.report.parent.mkdir(parents=True, exist_ok=True)  # each time: who gives up keeps what was measured
        options.report.write_text(json.dumps(_written(options.size, found), indent=1) + "\n")
    print(summary(found))
    options.report.with_suffix(".svg").write_text(picture(found))
    print(f"stored in {options.report}, with a picture beside it", file=sys.stderr)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testing.analysing", description="Measure the offline analysis.")
    parser.add_argument(
        "--size", choices=list(GRIDS), default="full", help="how far the grid goes (default: %(default)s)"
    )
    parser.add_argument("--naive", type=int, default=20, help="users of each size for whom every class is tried")
    parser.add_argument(
        "--resume", action="store_true", help="measure only the sizes that the report of an earlier run has not got"
    )
    parser.add_argument("--report", type=Path, default=ROOT / "out" / "bench" / "analysis.json")
    return parser.parse_args(arguments)


def _measured(report: Path, size: str) -> dict[Point, Measurement]:
    """Return what an earlier run of the same grid has measured."""
    if not report.exists():
        return {}
    stored = json.loads(report.read_text())
    if stored["size"] != size:
        sys.exit(f"{report} is of --size {stored['size']}, not of {size}: leave out --resume, or name another --report")
    return {one.point: one for one in map(Measurement.of, stored["points"])}


def _build() -> None:
    _PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["go", "test", "-C", str(ROOT / "monitor"), "-c", "-o", str(_PROGRAM), "./internal/analysis"], check=True
    )


def _measure(point: Point, naive: int) -> Measurement:
    """Measure one size in a process of its own, so that its memory is that of this size."""
    with tempfile.TemporaryDirectory(prefix="shai-analysing-", dir="/var/tmp") as base:
        output = Path(base) / "result.json"
        subprocess.run(
            [
                str(_PROGRAM), "-test.run=^$", "-test.bench=^BenchmarkScale$", "-test.benchtime=1x", "-test.timeout=0",
                f"-test.cpu={point.processors}", f"-population={point.users}", f"-documents={point.documents}",
                f"-naive={naive}", f"-scale-output={output}", *(["-files"] if point.files else []),
            ],
            check=True, stdout=subprocess.DEVNULL, cwd=_PACKAGE, env={**os.environ, "TMPDIR": base},
        )  # fmt: skip
        raw = json.loads(output.read_text())
        return Measurement.of({**raw, "asked": vars(point), "load": round(os.getloadavg()[0], 1)})


def _written(size: str, found: Sequence[Measurement]) -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "size": size,
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "points": [one.raw for one in found],
    }


if __name__ == "__main__":
    main()
