# SPDX-License-Identifier: BSD-2-Clause
"""Exact figures and thresholds, from known samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadgen.results import figures, tables
from loadgen.results import summary as summaries
from loadgen.tests.results.test_results import DATASET, PLAN, made_samples
from loadgen.thresholds import ThresholdError

MEASURED = made_samples()
FOUND = summaries.summarise(PLAN, DATASET, MEASURED)


def exact(mode: str, length: int, found: dict[str, Any] = FOUND) -> dict[str, dict[str, str]]:
    rows = tables.figures(found)["rows"]
    (row,) = (row for row in rows if (row["mode"], row["sessionLength"]) == (mode, length))
    return {figure["name"]: figure for figure in row["figures"]}


def test_figures_are_exact_and_in_seconds_and_ratios() -> None:
    shai = exact("shai", 1)
    assert float(shai["cpuSecondsPerSession"]["value"]) == pytest.approx(1302e-6 * 1.1, rel=1e-5)
    assert float(shai["cpuOverheadRatio"]["value"]) == pytest.approx(1302 / 1050 - 1, rel=1e-5)
    assert float(shai["cpuAddedSecondsPerSession"]["value"]) == pytest.approx(244e-6 * 1.1, rel=1e-5)
    assert float(shai["latencySecondsP90"]["value"]) == 0.012
    assert shai["paperThroughputOverheadRatio"] == {"name": "paperThroughputOverheadRatio", "value": "0.0474"}
    assert float(shai["cpuOverheadRatio"]["low"]) <= float(shai["cpuOverheadRatio"]["high"])
    assert "cpuOverheadRatio" not in exact("baseline", 1)
    assert set(exact("control", 1)) == set(shai) - {"interceptionsPerSession", "paperThroughputOverheadRatio"}


def test_after_one_round_there_are_no_intervals() -> None:
    once = summaries.summarise(PLAN, DATASET, [sample for sample in MEASURED if sample.round == 0])
    assert set(exact("shai", 1, once)["cpuOverheadRatio"]) == {"name", "value"}


def test_the_paper_has_no_figure_for_another_load() -> None:
    found = summaries.summarise(replace(PLAN, mispredicted=0.5), DATASET, MEASURED)
    assert "paperThroughputOverheadRatio" not in exact("shai", 1, found)
    assert "4.74" not in tables.plain(found)


def test_latencies_of_all_rounds_are_added_up() -> None:
    entry = next(one for one in FOUND["latency"] if (one["mode"], one["sessionLength"]) == ("shai", 1))
    assert (entry["boundsMilliseconds"], entry["counts"]) == ([9.5, 10.5], [1200, 1800, 0])


def test_latencies_of_all_modes_are_counted_by_the_same_bounds() -> None:
    """Otherwise a report would not know what share of one mode's queries is below a bound of another's."""
    faster = [
        replace(sample, latency_counts={"4.5": 1000}) if sample.mode == "baseline" else sample for sample in MEASURED
    ]
    found = {
        one["mode"]: (one["boundsMilliseconds"], one["counts"])
        for one in summaries.summarise(PLAN, DATASET, faster)["latency"]
        if one["sessionLength"] == 1
    }
    assert found["baseline"] == ([4.5, 9.5, 10.5], [3000, 0, 0, 0])
    assert found["shai"] == ([4.5, 9.5, 10.5], [0, 1200, 1800, 0])


@pytest.mark.parametrize(
    ("threshold", "exceeded", "says"),
    [
        ("overhead>5%", True, "24 % (mode shai, session_length 1)"),
        ("overhead{session_length=0}>5%", False, "0.799 %"),
        ("overhead{mode=dynamic,session_length=0}>5%", True, "mode dynamic, session_length 0"),
        ("cpu_added_per_session>250us", True, "268 µs"),
        ("p99>15ms", False, "15 ms"),
        ("login_p99>2ms", True, "3 ms"),
        ("failures>0", False, "0"),
        ("sessions_per_second<1", False, "/s"),
        ("overhead{mode=audit}>5%", True, "nothing was measured that this is about"),
    ],
)
def test_thresholds_are_judged_by_the_rows(threshold: str, exceeded: bool, says: str) -> None:  # noqa: FBT001
    (judged,) = figures.judge([threshold], FOUND, MEASURED)
    assert (judged["threshold"], judged["exceeded"]) == (threshold, exceeded)
    assert says in str(judged["message"])
    assert str(judged["message"]) in tables.plain({**FOUND, "thresholds": [judged]}).replace("\n", " ") or exceeded


def test_what_is_no_threshold_is_refused() -> None:
    with pytest.raises(ThresholdError, match="at character 10: expected a number"):
        figures.judge(["overhead>"], FOUND, MEASURED)
