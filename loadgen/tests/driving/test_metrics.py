# SPDX-License-Identifier: BSD-2-Clause
"""What is counted is what Prometheus reads."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from loadgen.driving.metrics import BUCKETS, FAILED, OK, REVOKED, TABLE, Tally, TallyCollector, Times

HOSTILE = ['a"b\\c\nd', "</script>", "\u202e\u2699\ufe0f" * 3, "x" * 65536]


def filled(pipeline: str = "syse") -> Tally:
    tally = Tally()
    series = tally["spike", pipeline, "shai"]
    series.queries.update({OK: 5, FAILED: 2, REVOKED: 1})
    series.sessions.update({OK: 3, FAILED: 1})
    series.shown, series.withheld, series.violations = 40, 7, 1
    for seconds in (0.0001, 0.0002, 0.003, 0.003, 20.0):
        series.query_times.add(seconds)
    series.login_times.add(0.004)
    return tally


def exposition(tally: Tally, users: int = 4, pipeline: str = "syse") -> str:
    registry = CollectorRegistry()
    registry.register(TallyCollector(tally, lambda: {("spike", pipeline): users}))
    return generate_latest(registry).decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_exported_is_what_the_table_says() -> None:
    families = {family.name: family for family in text_string_to_metric_families(exposition(filled()))}
    declared = {metric.name.removesuffix("_total"): metric for metric in TABLE}
    assert families.keys() == declared.keys()
    for name, family in families.items():
        metric = declared[name]
        assert (family.type, family.documentation) == (metric.type, metric.meaning)
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == set(metric.labels)


def test_counts_are_exact() -> None:
    found = samples(exposition(filled()))
    where = {"scenario": "spike", "pipeline": "syse", "mode": "shai"}

    def value(name: str, **labels: str) -> float:
        return found[name, frozenset({**where, **labels}.items())]

    assert [value("shai_load_queries_total", result=result) for result in (OK, FAILED, REVOKED)] == [5, 2, 1]
    assert [value("shai_load_sessions_total", result=result) for result in (OK, FAILED)] == [3, 1]
    assert value("shai_load_results_total") == 40
    assert value("shai_load_withheld_total") == 7
    assert value("shai_load_violations_total") == 1
    assert value("shai_load_query_seconds_count") == 5
    assert value("shai_load_query_seconds_sum") == pytest.approx(20.0063)
    assert value("shai_load_query_seconds_bucket", le="0.0001") == 1  # a bound is a part of its bucket
    assert value("shai_load_query_seconds_bucket", le="0.00025") == 2
    assert value("shai_load_query_seconds_bucket", le="0.005") == 4
    assert value("shai_load_query_seconds_bucket", le="10.0") == 4
    assert value("shai_load_query_seconds_bucket", le="+Inf") == 5
    assert found["shai_load_users", frozenset({("scenario", "spike"), ("pipeline", "syse")})] == 4


@pytest.mark.parametrize("name", ["syse", *HOSTILE])
def test_promtool_finds_nothing(name: str) -> None:
    text = exposition(filled(name), pipeline=name)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {dict(labels)["pipeline"] for _, labels in samples(text)} == {name}


@given(st.lists(st.floats(1e-5, 100), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99]))
def test_percentiles_are_right_to_the_width_of_a_bucket(seconds: list[float], share: float) -> None:
    times = Times()
    for value in seconds:
        times.add(value)
    exact = float(np.percentile(seconds, share * 100, method="inverted_cdf"))
    assert exact / 1.024 <= times.percentile(share) <= exact * 1.024
    cumulative = [count for _, count in times.buckets()]
    assert cumulative == [*(sum(value <= bound for value in seconds) for bound in BUCKETS), len(seconds)]


REQUESTS = st.lists(
    st.tuples(st.sampled_from(["baseline", "shai"]), st.sampled_from([OK, FAILED, REVOKED]), st.floats(0, 200)),
    max_size=50,
)


@given(st.lists(REQUESTS, max_size=5))
def test_reports_of_several_processes_add_up(workers: list[list[tuple[str, str, float]]]) -> None:
    together, alone = Tally(), Tally()
    for requests in workers:
        worker = Tally()
        for mode, result, seconds in requests:
            for tally in (worker, alone):
                series = tally["spike", "syse", mode]
                series.queries[result] += 1
                series.query_times.add(seconds)
                series.shown += 3
            together.add(json.loads(json.dumps(worker.take())))  # as it goes through a message
        together.add(worker.take())  # nothing is counted twice
    for labels, series in alone.series.items():
        assert together[labels].queries == +series.queries
        assert together[labels].query_times.counts == series.query_times.counts
        assert together[labels].query_times.sum == pytest.approx(series.query_times.sum)
        assert together[labels].shown == series.shown
