# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from loadgen import thresholds
from loadgen.driving.metrics import FAILED, OK, Series
from loadgen.scenarios.definitions import SCENARIOS
from loadgen.scenarios.outcomes import Outcome, Setting, Status, frequent, judge, write, write_statistics
from loadgen.scenarios.recording import Part, Recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SETTING = Setting("http://127.0.0.1:1", "syse", 24, 60.0, 1, 1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def search(series: Series, times: int, seconds: float = 0.01) -> None:
    series.queries[OK] += times
    series.shown += 10 * times
    for _ in range(times):
        series.query_times.add(seconds)


def test_what_is_counted_belongs_to_its_phase() -> None:
    clock, counted = Clock(), Series()
    search(counted, 1000)  # of an earlier run
    recording = Recording(counted, clock)
    for phase, seconds, queries in (("before", 2.0, 10), ("spike", 1.0, 50), ("after", 2.0, 8)):
        recording.enter(phase)
        recording.enter(phase)
        clock.now += seconds
        search(counted, queries, seconds / 100)
    recording.end()
    clock.now += 5  # users that leave
    search(counted, 1)
    parts = recording.parts()
    assert [(part.phase, part.seconds, part.counted.queries[OK]) for part in parts] == [
        ("before", 2.0, 10),
        ("spike", 1.0, 50),
        ("after", 2.0, 9),
        ("", 5.0, 69),
    ]
    assert parts[1].values["queries_per_second"] == 50
    assert parts[1].values["p99"] < parts[0].values["p99"]
    assert [dict(part.row.labels) for part in parts[-2:]] == [{"phase": "after"}, {}]


def test_every_quantity_of_thresholds_is_measured_or_needs_a_comparison() -> None:
    measured = Part("", 1.0, Series()).values.keys()
    assert {name for name, quantity in thresholds.QUANTITIES.items() if not quantity.compared} <= measured


def outcome(parts: Sequence[Part], *texts: str, errors: dict[str, int] | None = None, complete: bool = True) -> Outcome:
    judged = judge([thresholds.parse(text) for text in texts], parts)
    return Outcome(SCENARIOS["spike"], SETTING, parts, errors or {}, judged, complete=complete)


def test_failures_are_searches_logins_and_violations() -> None:
    counted = Series()
    search(counted, 96)
    counted.queries[FAILED], counted.sessions[FAILED], counted.violations = 2, 1, 1
    values = Part("", 2.0, counted).values
    assert values["failures"] == 4
    assert values["failure_ratio"] == 0.04
    assert outcome([Part("", 2.0, counted)], "failures>4").status is Status.WITHIN
    assert outcome([Part("", 2.0, counted)], "failures>3").status is Status.EXCEEDED
    assert outcome([Part("", 2.0, counted)], "failure_ratio>=4%").status is Status.EXCEEDED


def test_a_run_in_which_nothing_was_answered_is_not_within_a_time() -> None:
    empty = [Part("", 2.0, Series())]
    assert outcome(empty, "p99>1000s").status is Status.EXCEEDED
    assert math.isnan(empty[0].values["p99"])
    assert outcome(empty).plain()["parts"][0]["p99"] is None


def test_a_run_without_a_request_has_not_run_without_failures() -> None:
    empty = outcome([Part("", 2.0, Series())], "failures>0")
    assert empty.status is Status.EXCEEDED
    assert "failures>0: nothing was measured" in empty.table()
    assert outcome([Part("", 2.0, Series())], "violations>0").status is Status.WITHIN


def test_a_run_that_was_cut_off_is_not_judged() -> None:
    found = outcome([Part("", 2.0, Series())], "p99>1s", complete=False)
    assert found.status is Status.INTERRUPTED
    assert "exceeded" not in found.table()


def test_a_run_that_has_lost_a_process_is_not_judged() -> None:
    found = replace(outcome([Part("", 2.0, Series())], "failures>0"), lost=1)
    assert found.status is Status.FAILED
    assert found.plain()["complete"] is False
    assert "1 of 1 processes ended early" in found.table()
    assert "within" not in found.table()


def test_a_run_in_which_a_process_was_late_is_not_judged_and_was_not_interrupted() -> None:
    found = replace(outcome([Part("", 2.0, Series())], "failures>0", complete=False), late=1)
    assert found.status is Status.FAILED
    assert "1 of 1 processes had not told what they counted when it was given up: thresholds are not judged." in (
        found.table()
    )
    assert found.plain()["complete"] is False


def test_the_most_frequent_errors_are_kept_and_the_others_counted() -> None:
    errors = {f"error {number}": number for number in range(1, 5001)}
    kept = frequent(errors)
    assert next(iter(kept.items())) == ("error 5000", 5000)
    assert list(kept.items())[-1] == ("one of 4,980 other errors", sum(range(1, 4981)))
    assert len(kept) == 21
    assert frequent({"a": 1, "b": 2}) == {"b": 2, "a": 1}


def test_hostile_errors_stay_in_their_lines(tmp_path: Path) -> None:
    hostile = "\x1b[2J</script>\n\u202eevil\u0000\u2028" + "x" * 65536
    found = outcome([Part("", 2.0, Series())], errors={hostile: 3})
    printed = found.table()
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert len([line for line in printed.split("\n") if "evil" in line]) == 1
    write(found, tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["errors"] == {hostile: 3}


def test_no_link_is_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    results = tmp_path / "results"
    results.mkdir()
    for name in ("result.json", "parts.csv", "table.txt", "locust.json"):
        (results / name).symlink_to(precious)
        (results / f".{name}.new").symlink_to(precious)
    write(outcome([Part("", 2.0, Series())]), results)
    write_statistics([], results)
    assert precious.read_text() == "kept"
    assert not any(path.is_symlink() for path in results.iterdir())
    (tmp_path / "link").symlink_to(results)
    with pytest.raises(OSError, match="link"):
        write(outcome([Part("", 2.0, Series())]), tmp_path / "link")


def test_a_hostile_address_stays_in_its_line() -> None:
    found = replace(outcome([Part("", 2.0, Series())]), setting=replace(SETTING, host="http://\x1b[2J\nevil"))
    assert "\x1b" not in found.table()
    assert "\nevil" not in found.table()


def test_results_are_replaced_as_a_whole(tmp_path: Path) -> None:
    for _ in range(2):
        write(outcome([Part("before", 1.0, Series()), Part("", 2.0, Series())]), tmp_path)
        write_statistics([], tmp_path)
        found = {path.name for path in tmp_path.iterdir()}
        assert found == {"locust.json", "parts.csv", "result.json", "table.txt"}
