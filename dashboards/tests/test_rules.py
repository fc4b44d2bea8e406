# SPDX-License-Identifier: BSD-2-Clause
"""Prometheus' rules and its configuration, checked and tested by Prometheus' own program."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboards import generate, reference, rules
from testing.documents.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = rules.FILES[0].parent
TESTS = sorted((FOLDER / "tests").glob("*.yml"))
ALERTS = {rule["alert"]: rule for group in rules.groups() for rule in group["rules"] if "alert" in rule}

OF_TARGETS = {"job", "instance", "cluster", "namespace", "pool", "member"}
"""Labels that service discovery gives to everything that a target exports."""
OF_OTHERS = {"up"}
"""Metrics of Prometheus itself. Those of its client libraries are not the same on every system."""


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)


def accepted(*arguments: str | Path) -> None:
    """Run promtool; fail with what it says."""
    done = promtool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def cases(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(file.read_text())["tests"]
    return found


def configure(folder: Path) -> Path:
    """Lay out a folder as the comment in prometheus.yml says."""
    for name in ("rules", "targets", "tls"):
        (folder / name).mkdir()
    for name in ("ca.pem", "client.pem", "client.key"):
        (folder / "tls" / name).touch()
    for file in rules.FILES:
        shutil.copy(file, folder / "rules")
    shutil.copy(FOLDER / "prometheus.yml", folder)
    return folder / "prometheus.yml"


def test_the_rules_are_valid() -> None:
    accepted("check", "rules", *rules.FILES)


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    accepted("check", "config", configure(tmp_path))


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_alerts_fire_when_they_should_and_not_otherwise(file: Path) -> None:
    accepted("test", "rules", file)


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_is_seen_to_fire_and_not_to_fire(alert: str) -> None:
    """A rule that never fires passes every test that it does not, and one that always fires the others."""
    seen = {
        bool(check["exp_alerts"])
        for file in TESTS
        for case in cases(file)
        for check in case.get("alert_rule_test", ())
        if check["alertname"] == alert
    }
    assert seen == {True, False}


FAULTS = (
    ("tasks", '"Failed"', '"Running"'),
    ("tasks", 'unless ignoring (task, level, mode) shai_pipeline_mode{mode="baseline"} == 1', ""),
    ("audit", "shai_audit_verified == 0", "shai_audit_verified < 0"),
    ("enforcement", 'expr: up{job="shai-monitor"} == 0\n        for: 2m', 'expr: up{job="shai-monitor"} == 0'),
    ("facts", "10|10[.]0", "1|1[.]0"),
    ("facts", "10|10[.]0", "10"),
    ("facts", "10|10[.]0", "10[.]0"),
    ("counts", "(shai_operator_watch_lag_seconds) > 60\n        for: 1m", "(shai_operator_watch_lag_seconds) > 60"),
    (
        "counts",
        "(shai_operator_watch_lag_seconds) > 60\n        for: 1m",
        "(shai_operator_watch_lag_seconds) > 60\n        for: 2m",
    ),
    ("operator", "unless on (cluster, pool, member)", "unless on (cluster, namespace, pool, member)"),
    ("interruptions", 'expr: up{job="shai-monitor"} == 0\n        for: 2m', 'expr: up{job="shai-monitor"} == 0'),
    ("counts", "round(increase(shai_task_restarts_total[15m]))", "increase(shai_task_restarts_total[15m])"),
    ("load", "baseline|audit|control", "baseline"),
    ("facts", " and shai_fact_source_failing == 1", ""),
    ("ages", "> 3 * 86400", "> 3 * 3600"),
    ("analysis", "shai_analysis_failing == 1", "increase(shai_analysis_failing[15m]) > 0"),
    ("operator", 'pool!=""', 'pool="-"'),
    ("operator", 'pool!=""', ""),
    ("operator", "(shai_member_ready) == 1", "(shai_member_ready)"),
    ("load", "max_over_time(shai_load_violations_total", "increase(shai_load_violations_total"),
)


@pytest.mark.parametrize(("name", "right", "wrong"), FAULTS)
def test_a_fault_in_a_rule_is_found(tmp_path: Path, name: str, right: str, wrong: str) -> None:
    for file in rules.FILES:
        (tmp_path / file.name).write_text(file.read_text().replace(right, wrong))
    (tmp_path / "tests").mkdir()
    assert promtool("test", "rules", shutil.copy(FOLDER / "tests" / f"{name}.yml", tmp_path / "tests")).returncode != 0


@pytest.fixture(scope="module")
def tables() -> dict[str, set[str]]:
    """Return the labels of every metric that a program exports."""
    found: dict[str, set[str]] = {}
    for program in reference.PROGRAMS:
        for metric in program.table():
            labels = {label["name"] for label in metric["labels"]}
            if metric["type"] == "histogram":
                found |= {metric["name"] + "_bucket": labels | {"le"}}
                found |= {metric["name"] + suffix: labels for suffix in ("_sum", "_count")}
            else:
                found[metric["name"]] = labels
    return found


def test_the_tests_give_the_rules_what_the_programs_export(tables: dict[str, set[str]]) -> None:
    """Rules that fire on these series have no metric or label that does not exist."""
    series = {entry["series"] for file in TESTS for case in cases(file) for entry in case["input_series"]}
    for family in text_string_to_metric_families("".join(f"{entry} 1\n" for entry in sorted(series))):
        for sample in family.samples:
            if sample.name not in OF_OTHERS:
                assert sample.name in tables
                assert set(sample.labels) - OF_TARGETS == tables[sample.name] - OF_TARGETS, sample.name


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_says_what_it_is_and_has_its_section(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor == alert.lower()
    path = generate.ROOT / page
    assert anchor in Page(page, path.read_text()).anchors()


def test_each_section_of_an_alert_has_one() -> None:
    page = generate.ROOT / "docs" / "operations.md"
    sections = {line.removeprefix("### ") for line in page.read_text().splitlines() if line.startswith("### Shai")}
    assert sections == set(ALERTS)


def test_the_prometheus_operator_gets_the_same_rules() -> None:
    made = yaml.safe_load((generate.ROOT / "deploy" / "monitoring" / "prometheusrule.yaml").read_text())
    assert made["kind"] == "PrometheusRule"
    assert made["spec"] == {"groups": rules.groups()}
