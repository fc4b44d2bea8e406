# SPDX-License-Identifier: BSD-2-Clause
"""From known samples to results and tables. `pytest --rewrite` rewrites the golden files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.plan import PLANS, Plan
from loadgen.results import samples, tables
from loadgen.results import summary as summaries
from loadgen.results.estimates import Estimate
from loadgen.results.samples import Sample

GOLDEN = Path(__file__).parent / "golden"
PLAN = Plan("test", rounds=3, slice_seconds=1.0, warm_up_seconds=1.0, session_lengths=(1, 0), seed=7)
DATASET = {"documents": 100, "users": 10}
MACHINE = {"system": "Linux 6.8", "processor": "test", "cores": 2, "memoryMegabytes": 1024, "python": "3.11"}

CPU_PER_QUERY = {"baseline": 1000.0, "dynamic": 1100.0, "dynamic-lazy": 1050.0, "shai": 1002.0, "control": 1001.0}
CPU_PER_SESSION = {"baseline": 50.0, "dynamic": 650.0, "dynamic-lazy": 550.0, "shai": 300.0, "control": 50.0}


def made_samples() -> list[Sample]:
    """Slices with known costs, drifting from round to round by a tenth."""
    made: list[Sample] = []
    for number in range(PLAN.rounds):
        for length in PLAN.session_lengths:
            for mode in PLAN.series:
                queries = 1000
                sessions = queries if length == 1 else 24
                drift = 1 + number / 10
                micros = drift * (queries * CPU_PER_QUERY[mode] + sessions * CPU_PER_SESSION[mode])
                made.append(
                    Sample(
                        round=number,
                        order=len(made),
                        mode=mode,
                        session_length=length,
                        mispredicted=0.0,
                        seed=7,
                        queries=queries,
                        sessions=sessions,
                        failures=0,
                        seconds=micros / 1e6,
                        cpu_seconds=micros / 1e6,
                        driver_cpu_seconds=micros / 2e6,
                        latency_p50_ms=10.0,
                        latency_p90_ms=12.0,
                        latency_p99_ms=15.0,
                        login_p50_ms=1.0,
                        login_p90_ms=2.0,
                        login_p99_ms=3.0,
                        latency_counts={"9.5": 400, "10.5": 600},
                        interceptions=intercepted(mode, queries, sessions),
                        process_cpu_seconds={"worker": micros / 1e6},
                    )
                )
    return made


def plain(value: float, low: float, high: float) -> dict[str, Any]:
    """Return an estimate in the form of results.json."""
    found = Estimate(value, low, high)
    caveats = {"belowNoise": found.below_noise, "imprecise": found.imprecise}
    return {"estimate": value, "low": low, "high": high, **caveats}


def intercepted(mode: str, queries: int, sessions: int) -> dict[str, int]:
    if mode in ("baseline", "control"):
        return {}
    found = {"register": sessions, "accept": sessions, "authenticate": sessions, "reset": sessions}
    return {**found, "send": 2 * queries} if mode.startswith("dynamic") else found


@pytest.fixture
def summary(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(summaries, "machine", lambda: MACHINE)
    return summaries.summarise(PLAN, DATASET, made_samples())


def test_known_costs_come_out(summary: dict[str, Any]) -> None:
    unlimited = summary["throughput"][1]
    expected = CPU_PER_QUERY["dynamic"] + 24 * CPU_PER_SESSION["dynamic"] / 1000
    assert unlimited["dynamic"]["cpuMicrosPerQuery"]["low"] == pytest.approx(expected)
    assert unlimited["shai"]["overhead"]["estimate"] == pytest.approx(1 - 1001.2 / 1009.2)
    # 250 µs a session, minus the share per query of what 24 sessions add to 1000 queries, with a drift of a tenth
    assert summary["addedPerSession"]["shai"]["estimate"] == pytest.approx((252 - 8) * 1.1)


def test_what_two_equal_stacks_differ_by_is_beside_what_enforcement_adds(summary: dict[str, Any]) -> None:
    assert summary["throughput"][1]["control"]["addedCpuMicrosPerQuery"]["estimate"] == pytest.approx(1.1)
    assert summary["addedPerSession"]["control"]["estimate"] == pytest.approx(0.0)
    remarks = [line for line in tables.remarks(summary) if line.startswith("CPU by which the control differs: 1.10 µs")]
    assert len(remarks) == 1
    assert "Two equal installations without enforcement differ by 0.10 %" in tables.headline(summary)


def test_interceptions_are_told_apart(summary: dict[str, Any]) -> None:
    assert summary["interceptions"]["shai"]["perSession"] == 4
    assert summary["interceptions"]["shai"]["perQuery"] == 0
    assert summary["interceptions"]["dynamic"]["perQuery"] == 2
    assert summary["interceptions"]["baseline"]["byKind"] == {}


def test_results_are_plain_json(summary: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    summaries.write(path, summary)
    assert json.loads(path.read_text()) == json.loads(json.dumps(summary))
    assert list(tmp_path.iterdir()) == [path]


def test_one_round_has_null_intervals() -> None:
    found = summaries.summarise(PLAN, DATASET, [sample for sample in made_samples() if sample.round == 0])
    assert found["throughput"][0]["shai"]["overhead"]["low"] is None
    for text in (tables.markdown(found), tables.plain(found)):
        assert "One round was measured, so there are no intervals" in text
        assert not {"†", "‡"} & set(text)
    assert tables.figures(found)["rows"][3]["cpuOverhead"] == "24.0 %"


def test_samples_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    file = samples.SampleFile(path)
    for sample in made_samples():
        file.append(sample)
    assert samples.read(path) == made_samples()


@pytest.mark.parametrize("name", ["table.txt", "table.md"])
def test_table(summary: dict[str, Any], name: str, request: pytest.FixtureRequest) -> None:
    text = tables.markdown(summary) if name.endswith(".md") else tables.plain(summary)
    if request.config.getoption("--rewrite"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


@pytest.mark.parametrize(
    ("figure", "mark", "caveat"),
    [
        ((0.2, 0.15, 0.25), "20.0 % [15.0, 25.0]", ""),
        ((0.2, 0.1, 0.4), "20.0 % [10.0, 40.0]†", " (imprecise)"),
        ((0.2, -0.1, 0.4), "20.0 % [-10.0, 40.0]‡", " (below the noise)"),
    ],
)
def test_what_cannot_be_relied_on_is_marked_and_explained(
    summary: dict[str, Any], figure: tuple[float, float, float], mark: str, caveat: str
) -> None:
    summary["throughput"][0]["shai"]["overhead"] = plain(*figure)
    assert mark in tables.rows(summary)[3]
    assert tables.figures(summary)["rows"][3]["throughputOverhead"] == mark.rstrip("†‡") + caveat
    explained = [line for line in tables.remarks(summary) if line.startswith(("†", "‡"))]
    assert [line[0] for line in explained] == ([mark[-1]] if caveat else [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (-0.004, "0.00"),
        (-0.006, "-0.01"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (-99.94, "-99.9"),
        (99.96, "100"),
        (-1e9, "-1000000000"),
    ],
)
def test_numbers_have_three_digits_at_the_edges_too(value: float, text: str) -> None:
    assert tables.three_digits(value) == text


def test_the_table_fits_100_columns(summary: dict[str, Any]) -> None:
    extreme = plain(-12.341, -23.456, 34.567)
    for entry in summary["throughput"]:
        for mode in PLAN.modes:
            entry[mode]["cpuMicrosPerQuery"]["estimate"] = entry[mode]["queriesPerSecond"]["estimate"] = 123456.7
            for field in ("overhead", "cpuOverhead", "addedCpuMicrosPerQuery"):
                entry[mode][field] = extreme
    text = tables.plain(summary)
    assert max(map(len, text.splitlines())) <= tables.WIDTH
    assert "-1234 % [-2346, 3457]‡" in text
    assert "…" not in text, "something is cut off"


def test_a_status_has_the_tables_figures(summary: dict[str, Any]) -> None:
    found = tables.figures(summary)
    assert [row["mode"] for row in found["rows"]] == ["baseline", "dynamic", "dynamic-lazy", "shai", "control"] * 2
    assert {name: value for name, value in found["rows"][0].items() if name != "figures"} == {
        "sessionLength": 1,
        "mode": "baseline",
        "queriesPerSecond": 866,
        "cpuMicrosecondsPerQuery": 1155,
        "cpuMicrosecondsPerSession": 1155,
    }
    assert found["rows"][3]["throughputOverhead"] == "19.4 % [19.4, 19.4]"
    assert found["rows"][3]["paper"] == "4.74 %"
    assert found["summary"] == {
        "dynamic": "40.0 % … 10.3 %",
        "dynamic-lazy": "34.4 % … 5.83 %",
        "shai": "19.4 % … 0.79 %",
        "control": "0.10 %",
    }


@pytest.mark.parametrize("lengths", [(0,), (8,)])
def test_sessions_of_one_length_do_not_tell_what_a_session_costs(lengths: tuple[int, ...]) -> None:
    measured = [replace(sample, session_length=lengths[0]) for sample in made_samples() if sample.session_length == 1]
    found = summaries.summarise(replace(PLAN, session_lengths=lengths), DATASET, measured)
    assert found["addedPerSession"] == {}
    assert "per session" not in tables.remarks(found)[0]


def test_two_modes_are_enough() -> None:
    measured = [sample for sample in made_samples() if sample.mode in ("shai", "baseline", "control")]
    found = summaries.summarise(replace(PLAN, modes=("shai", "baseline")), DATASET, measured)
    assert [row[1] for row in tables.rows(found)] == ["shai", "baseline", "control"] * 2
    assert set(tables.figures(found)["summary"]) == {"shai", "control"}


def test_a_saturated_load_generator_is_said(summary: dict[str, Any]) -> None:
    assert not any("load generator" in line for line in tables.remarks(summary))
    summary["throughput"][0]["shai"]["driverShare"] = 0.97
    assert any("busy 97%" in line for line in tables.remarks(summary))


def test_every_size_has_the_papers_figure_for_each_session_length() -> None:
    for plan in PLANS.values():
        assert set(plan.session_lengths) <= set(tables.PAPER)


def test_the_table_says_what_was_done_beside_searches(summary: dict[str, Any]) -> None:
    support = {"read": 200, "logged": 200, "refused": 0, "milliseconds": {"p50": 4.2, "p90": 6.0, "p99": 12.0}}
    found = {**summary, "beside": {"support": support, "interests": {"users": 24, "advertisements": 20}}}
    said = "\n".join(tables.remarks(found))
    assert "read 200 documents of users, each after its entry: the log has 200 new ones, and 0 were refused" in said
    assert "4.20 ms (p50), 12.0 ms (p99)" in said
    assert "24 users had topics made of what they searched for and opened, and saw 20 advertisements" in said
    assert "documents of users, each" not in "\n".join(tables.remarks({**summary, "beside": {}}))
