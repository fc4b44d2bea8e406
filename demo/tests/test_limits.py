# SPDX-License-Identifier: BSD-2-Clause
"""What a load generator says keeps far away from the limits of its scrape."""

from __future__ import annotations

import re
from typing import Any

import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dashboards import rules
from loadgen.driving.metrics import Tally, TallyCollector
from loadgen.plan import KNOWN_MODES

_JOBS: list[dict[str, Any]] = yaml.safe_load((rules.FILES[0].parent / "prometheus.yml").read_text())["scrape_configs"]
(JOB,) = (job for job in _JOBS if job["job_name"] == "shai-loadgen")


def test_a_load_generator_in_all_modes_keeps_its_limits() -> None:
    pipeline, tally = "p" * 63, Tally()
    for mode in (*KNOWN_MODES, "control"):
        counted = tally["sessions-32", pipeline, mode]
        counted.query_times.add(0.1)
        counted.login_times.add(0.1)
    registry = CollectorRegistry()
    registry.register(TallyCollector(tally, lambda: {("sessions-32", pipeline): 1}))
    text = generate_latest(registry).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert len(samples) < 450 < JOB["sample_limit"] / 4
    assert len(text) < 90_000
    assert JOB["body_size_limit"] == "1MB"
    (names,) = [
        one for one in JOB["metric_relabel_configs"] if one.get("source_labels") == ["pipeline", "scenario", "mode"]
    ]
    for sample in samples:
        assert re.fullmatch(names["regex"], ";".join(sample.labels.get(label, "") for label in names["source_labels"]))
