# SPDX-License-Identifier: BSD-2-Clause
"""The table of metrics, and what is exported, are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from shai_operator.__main__ import main
from shai_operator.metrics import counted, exposition
from shai_operator.metrics.declared import BY_NAME, COUNTER, HISTOGRAM, METRICS
from shai_operator.metrics.exposition import Format
from shai_operator.reconcile.objects import PLURALS
from tests.metrics import full

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric

_FOREIGN = ("python_", "process_")
"""Of the client library: the process, the interpreter."""


@pytest.fixture(scope="module")
def exposed() -> str:
    """Return what is scraped when every metric has a value."""
    for labelled, values in (
        (counted.RECONCILE_SECONDS, ("Pipeline",)),
        (counted.RECONCILE_ERRORS, ("Pipeline",)),
        (counted.WATCH_LAG, ("Pipeline",)),
        (counted.API_REQUESTS, ("get", "Pipeline")),
    ):
        labelled.labels(*values)
    return exposition.text(full.snapshot(), Format.PLAIN).decode()


def test_what_is_exported_is_what_is_declared(exposed: str) -> None:
    found = {}
    for family in text_string_to_metric_families(exposed):
        name = family.name + ("_total" if family.type == COUNTER else "")
        if not name.startswith(_FOREIGN):
            labels = {frozenset(sample.labels.keys() - {"le"}) for sample in family.samples}
            found[name] = family.type, labels, family.documentation
    declared = {metric.name: (metric.type, {frozenset(metric.label_names)}, metric.meaning) for metric in METRICS}
    assert found == declared


def test_prometheus_finds_nothing_to_improve(exposed: str) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=exposed, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_both_formats_say_the_same(exposed: str) -> None:
    found = exposition.text(full.snapshot(), Format.OPENMETRICS).decode()

    def series(families: Iterable[Metric]) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
        said: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for family in families:
            for sample in family.samples:
                if not sample.name.startswith(_FOREIGN):
                    said.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return said

    families = openmetrics.text_string_to_metric_families(found)  # type: ignore[no-untyped-call]  # has no types
    assert series(families) == series(text_string_to_metric_families(exposed))
    assert found.endswith("# EOF\n")
    assert found.count("# EOF") == 1


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--output", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [metric["name"] for metric in listed] == list(BY_NAME)
    assert {tuple(metric) for metric in listed} == {("name", "type", "labels", "unit", "meaning")}
    assert {tuple(label) for metric in listed for label in metric["labels"]} == {("name", "meaning")}
    assert main(["metrics"]) == 0
    text = capsys.readouterr().out
    assert all(f"{metric.name} ({metric.type}" in text for metric in METRICS)


def test_names_say_type_and_unit() -> None:
    for metric in METRICS:
        assert metric.name.endswith("_total") == (metric.type == COUNTER)
        assert metric.unit in metric.name
        assert metric.type != HISTOGRAM or metric.unit == "seconds"
        assert len(set(metric.label_names)) == len(metric.label_names)


def test_failures_of_every_kind_begin_at_0() -> None:
    """Alerts would not see the first ones otherwise; in a new process, since other tests count failures."""
    program = (
        "from shai_operator.metrics.counted import RECONCILE_ERRORS\n"
        "print(*[(one.labels['kind'], one.value) for one in next(iter(RECONCILE_ERRORS.collect())).samples], sep=';')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(counted.__file__).parents[2])}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    assert done.stdout.strip() == ";".join(str((kind, 0.0)) for kind in PLURALS)
