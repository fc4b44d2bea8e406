# SPDX-License-Identifier: BSD-2-Clause
"""From slices with known costs to session.json and its tables."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.datasets.crowd import FAR, NEAR, USERS
from loadgen.measuring.sessions import turns
from loadgen.plan import BARE, UNLIMITED, Plan
from loadgen.results import session_tables, sessions, tables
from loadgen.results.estimates import Estimate
from loadgen.results.samples import Sample

SESSION = {
    "baseline": 200.0, "control": 205.0, "forked": 400.0, "shai": 750.0, "process": 900.0, "dynamic": 800.0,
    "dynamic-lazy": 790.0, "beside": 1250.0,
}  # fmt: skip
RATES = {"shai": 1200, "beside": 400}
BARE_AND_BESIDE = (*sessions.BARE_SERIES, sessions.BESIDE)
QUERY = {"baseline": 100.0, "control": 101.0, "shai": 110.0, "dynamic": 400.0, "dynamic-lazy": 340.0}
ASKED_MICROS = 20.0
PLAN = Plan("sessions", rounds=5, slice_seconds=1.0, session_lengths=(BARE, UNLIMITED), warm_up_seconds=1.0)
ED25519 = Estimate(50.0, 49.0, 51.0)
LIVE = {
    "live": 640, "wanted": 10000, "pipelines": 20, "memory_kib_per_session": 300, "revoked": 64,
    "revoked_ms": 12.5, "answered_ms": 10.0, "limit": "memory",
}  # fmt: skip


def made_samples(rounds: int = PLAN.rounds) -> list[Sample]:
    """All slices of a plan, with known costs that drift from round to round."""
    return [made(turn.mode, turn) for turn in turns(replace(PLAN, rounds=rounds), BARE_AND_BESIDE)]


def made(series: str, turn: Any) -> Sample:
    bare = turn.session_length == BARE
    queries, people = (0, RATES.get(series, 1000)) if bare else (2000, 24)
    query = QUERY.get(series, 0.0) + (ASKED_MICROS if turn.people == FAR else 0.0)
    micros = (1 + turn.round / 10) * (people * SESSION[series] + queries * query)
    asked = 3 * queries if series.startswith("dynamic") else 0
    return Sample(
        round=turn.round, order=turn.order, mode=series, session_length=turn.session_length, mispredicted=0.0,
        seed=turn.seed, queries=queries, sessions=people, failures=0, seconds=1.0, cpu_seconds=micros / 1e6,
        driver_cpu_seconds=0.97 if series == "baseline" else 0.5, latency_p50_ms=1.0, latency_p90_ms=1.0,
        latency_p99_ms=1.0, login_p50_ms=1.0, login_p90_ms=1.0, login_p99_ms=1.0,
        interceptions={"accept": people, "open": asked},
        process_cpu_seconds={"worker": micros / 2e6, "monitor": micros / 2e6}, people=turn.people,
    )  # fmt: skip


def counts(calls: int, people: int = 100, queries: int = 1000) -> sessions.Counts:
    """Count ``calls`` of the supervisor."""
    numbers = {kind: {"worker": 300, "monitor": 100} for kind in ("faults", "switches")}
    calls_of = {"worker": 300, "monitor": 100, "supervisor": calls}
    return sessions.Counts(people, queries, {**numbers, "syscalls": calls_of})


NOTHING, ASKED = counts(0), counts(6000)


def summarised(
    measured: list[Sample],
    bare: sessions.Counts = NOTHING,
    near: sessions.Counts = NOTHING,
    far: sessions.Counts = ASKED,
) -> dict[str, Any]:
    counted = {**dict.fromkeys(sessions.COUNTED, NOTHING), "shai": bare}
    size = {"rounds": len({one.round for one in measured}), "seed": 1}
    return sessions.summarise(
        measured, ed25519=ED25519, counts=counted, near=near, far=far, size=size, seed=1, beside="1234abc"
    )


@pytest.fixture
def found() -> dict[str, Any]:
    return {**summarised(made_samples()), "live": LIVE, "live_process": {**LIVE, "memory_kib_per_session": 200}}


def test_each_round_measures_everything_once_and_pairs_with_one_seed() -> None:
    planned = list(turns(PLAN))
    assert [turn.order for turn in planned] == list(range(len(planned)))
    assert len({(turn.round, turn.mode, turn.session_length, turn.people) for turn in planned}) == len(planned)
    for compared in ((BARE, USERS), (UNLIMITED, USERS), (UNLIMITED, NEAR), (UNLIMITED, FAR)):
        own = [turn for turn in planned if (turn.session_length, turn.people) == compared]
        assert len({(turn.round, turn.seed) for turn in own}) == PLAN.rounds
    near, far = ([turn.seed for turn in planned if turn.people == people] for people in (NEAR, FAR))
    assert near == far
    assert planned == list(turns(PLAN))
    assert planned != list(turns(replace(PLAN, seed=2)))


def test_known_costs_come_out(found: dict[str, Any]) -> None:
    """The middle one of five rounds has a drift of two tenths."""
    assert found["added_cpu_us_per_session"]["value"] == pytest.approx(550 * 1.2 + 50)
    assert found["added_cpu_us_per_session_process"]["value"] == pytest.approx(700 * 1.2 + 50)
    assert found["isolating_cpu_us_per_session_rolled_back"]["value"] == pytest.approx(50 * 1.2)
    assert found["isolating_cpu_us_per_session"]["value"] == pytest.approx(200 * 1.2)
    assert found["deciding_cpu_us_per_session"]["value"] == pytest.approx(500 * 1.2 + 50)
    assert found["control_us_per_session"]["value"] == pytest.approx(5 * 1.2)
    assert found["ed25519_cpu_us_per_session"] == {"value": 50.0, "low": 49.0, "high": 51.0}
    assert found["cpu_us_per_interception"]["value"] == pytest.approx(ASKED_MICROS * 1.2)
    assert found["cpu_us_per_interception_dynamic"]["value"] == pytest.approx(100 * 1.2)
    assert found["cpu_us_per_interception_dynamic_lazy"]["value"] == pytest.approx(80 * 1.2)


def test_another_checkout_is_compared_within_the_rounds(found: dict[str, Any]) -> None:
    assert found["beside"]["commit"] == "1234abc"
    assert found["beside"]["sessions_per_second_ratio"] == {"value": 3.0, "low": 3.0, "high": 3.0}
    assert found["beside"]["saved_cpu_us_per_session"]["value"] == pytest.approx(500 * 1.2)


def test_without_another_checkout_nothing_is_said_of_one() -> None:
    measured = [made(turn.mode, turn) for turn in turns(PLAN)]
    counted = dict.fromkeys(sessions.COUNTED, NOTHING)
    found = sessions.summarise(
        measured, ed25519=ED25519, counts=counted, near=NOTHING, far=ASKED, size={"rounds": 5, "seed": 1}, seed=1
    )
    assert found["beside"] is None
    assert found["sessions_per_second"].keys() == set(sessions.BARE_SERIES)
    assert "beside" not in session_tables.plain(found)


def test_a_query_is_not_charged_for_the_sessions_around_it(found: dict[str, Any]) -> None:
    assert found["added_cpu_us_per_query"]["value"] == pytest.approx(10 * 1.2)
    assert found["control_us_per_query"]["value"] == pytest.approx(1 * 1.2)


def test_every_figure_has_an_interval_around_it(found: dict[str, Any]) -> None:
    figures = [value for name, value in found.items() if "_us_per_" in name]
    assert len(figures) == 12
    for value in [*figures, *found["sessions_per_second"].values()]:
        assert value.keys() == {"value", "low", "high"}
        assert value["low"] <= value["value"] <= value["high"]


def test_what_was_counted_is_given_per_session_and_process(found: dict[str, Any]) -> None:
    assert found["faults"] == found["switches"] == found["syscalls"] == dict.fromkeys(sessions.COUNTED, 4.0)
    assert found["by_process"]["shai"]["syscalls"] == {"worker": 3.0, "monitor": 1.0, "supervisor": 0.0}
    assert found["by_process"]["control"].keys() == {"cpu_us_per_session"}
    assert found["by_process"]["shai"]["cpu_us_per_session"]["monitor"] == pytest.approx(375 * 1.2)


def test_results_are_plain_json(found: dict[str, Any]) -> None:
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_one_round_has_null_intervals_and_says_so() -> None:
    found = summarised(made_samples(rounds=1))
    assert found["added_cpu_us_per_session"]["low"] is None
    assert found["live"] is None
    assert "do not rely on these figures" in session_tables.plain(found)


def test_the_tables_fit_and_say_what_matters(found: dict[str, Any]) -> None:
    text = session_tables.plain(found)
    assert max(map(len, text.splitlines())) <= tables.WIDTH
    for expected in ("two equal baselines differ by, per session", "forked", "640 live idle sessions in 20 pipelines",
                     "64 of them revoked at once: 12.5 ms to the end of the last one", "There are not 10000: memory",
                     "limited the sessions per second of baseline", "mode shai of 1234abc",
                     "3.00 times its sessions per second (3.00 … 3.00)"):  # fmt: skip
        assert expected in text


def test_without_a_live_session_the_limit_is_said(found: dict[str, Any]) -> None:
    nothing = {**LIVE, "live": 0, "pipelines": 0, "revoked": 0, "memory_kib_per_session": 0}
    del nothing["revoked_ms"], nothing["answered_ms"]
    assert "No live session could be held: memory" in session_tables.plain({**found, "live": nothing})


def test_workers_that_are_not_rolled_back_are_reported(found: dict[str, Any]) -> None:
    assert "not rolled back" not in session_tables.plain(found)
    unsealed = {**found, "unsealed": "cannot be sealed: two threads"}
    assert "shai were not rolled back: cannot be sealed: two threads" in session_tables.plain(unsealed)


def test_an_interception_that_nobody_counted_has_no_cost() -> None:
    measured = [replace(one, interceptions={}) for one in made_samples()]
    with pytest.raises(sessions.UncountedError, match="counted no interception of a query in mode dynamic"):
        summarised(measured)


@pytest.mark.parametrize("far", [0, 999])
def test_documents_that_are_not_asked_for_tell_nothing_about_interceptions(far: int) -> None:
    with pytest.raises(sessions.UncountedError, match=r"makes \d\.\d\d system calls more for a document"):
        summarised(made_samples(), far=counts(far))


@pytest.mark.parametrize(("asks", "counted"), [(6, True), (0, False)])
def test_a_busy_machine_that_answers_few_queries_does_not_hide_who_is_asked(*, asks: int, counted: bool) -> None:
    """With 4 users, 5 queries near and 400 far: sessions of 60 calls each outnumber what is asked for."""
    near, far = counts(4 * 60 + 3 * 5, 4, 5), counts(4 * 60 + (3 + asks) * 400, 4, 400)
    with contextlib.nullcontext() if counted else pytest.raises(sessions.UncountedError):
        summarised(made_samples(), counts(100 * 60), near, far)


numbers = st.floats(min_value=-1e6, max_value=1e6)


@given(value=numbers, by=numbers)
def test_a_shifted_estimate_keeps_its_width(value: float, by: float) -> None:
    moved = sessions.shifted(Estimate(value, value - 1, math.inf), by)
    assert moved.value - moved.low == pytest.approx(1)
    assert moved.high == math.inf


@pytest.mark.parametrize("value", [0.0, -0.001, 9.996, 99.96, -99.96, 123456.7, -123456.7, 9999999.4])
def test_tables_show_every_measured_number_completely(found: dict[str, Any], value: float) -> None:
    number = {"value": value, "low": value, "high": value}
    found["live"] = found["live_process"] = {**LIVE, "memory_kib_per_session": round(value)}
    for name in [name for name in found if "_us_per_" in name]:
        found[name] = number
    found["sessions_per_second"] = dict.fromkeys(BARE_AND_BESIDE, number)
    found["beside"] = {"commit": "1234abc-dirty", **dict.fromkeys(list(found["beside"])[1:], number)}
    for kind in ("faults", "switches", "syscalls"):
        found[kind] = dict.fromkeys(found[kind], value)
    for own in found["by_process"].values():
        own["cpu_us_per_session"] = {"a task with a name of forty characters in all": value}
    lines = session_tables.plain(found).splitlines()
    assert max(map(len, lines)) <= tables.WIDTH
    assert all(line == line.rstrip() for line in lines)
    assert not [line for line in lines if "…" in line.replace(" … ", "")]
