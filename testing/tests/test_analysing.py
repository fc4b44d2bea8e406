# SPDX-License-Identifier: BSD-2-Clause
"""What the measurement of the analysis shows of its results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from testing.analysing.__main__ import main
from testing.analysing.chart import picture
from testing.analysing.points import GRIDS, Measurement
from testing.analysing.report import slope, summary

if TYPE_CHECKING:
    from pathlib import Path


def measurement(users: int, cpu: float, *, documents: int | None = None, processors: int = 1) -> Measurement:
    """Return what a size might have cost."""
    steps = ("bundle", "facts", "register", "indexer and search", "analysis", "store", "report", "naive", "open")
    return Measurement.of(
        {
            "users": users,
            "documents": 25 * users if documents is None else documents,
            "classes": 2 * users,
            "processors": processors,
            "files": False,
            "bytes_per_user": 1100,
            "naive_per_user": 0.25,
            "joined_per_user": cpu / users,
            "phases": [
                {
                    "name": name,
                    "cpu_seconds": cpu,
                    "wall_seconds": cpu,
                    "peak_bytes": 3 << 20,
                    "peak_anonymous_bytes": 2 << 20,
                }
                for name in steps
            ],
        }
    )


def test_the_slope_is_the_exponent_of_the_growth() -> None:
    """It leaves out sizes that differ in more than users."""
    found = [measurement(users, 1e-3 * users**1.5) for users in (100, 1000, 10000)]
    found.append(measurement(10000, 99.0, documents=14_500_000))
    found.append(measurement(10000, 99.0, processors=2))
    assert slope(found, "analysis") == pytest.approx(1.5)
    assert slope(found[:1], "analysis") is None


def test_every_size_has_its_rows_and_a_place_in_the_picture() -> None:
    """The picture is well-formed, and leaves nothing out."""
    found = [measurement(users, users / 1000) for users in (2500, 40000)]
    text = summary(found)
    assert text.count("2,500 / 62,500") == 2
    assert text.count("40,000 / 1,000,000") == 2
    circles = [part for part in ET.fromstring(picture(found)).iter() if part.tag.endswith("circle")]  # noqa: S314 - our own
    assert len(circles) == 6


def test_the_full_grid_reaches_the_papers_sizes() -> None:
    """Forty thousand users, and 14.5 million documents."""
    assert max(point.users for point in GRIDS["full"]) == 40000
    assert max(point.documents for point in GRIDS["full"]) == 14_500_000


def test_a_run_that_is_resumed_measures_only_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a report that has all sizes, it prints the tables, at once. It is not mixed with another grid."""
    report = tmp_path / "analysis.json"
    points = [{**measurement(one.users, 1.0).raw, "asked": vars(one), "load": 7.5} for one in GRIDS["quick"]]
    report.write_text(json.dumps({"size": "quick", "points": points}))
    main(["--size", "quick", "--resume", "--report", str(report)])
    printed = capsys.readouterr()
    assert "measuring" not in printed.err
    assert printed.out.count("7.5") == len(points)
    assert report.with_suffix(".svg").exists()
    with pytest.raises(SystemExit, match="leave out --resume"):
        main(["--size", "half", "--resume", "--report", str(report)])
