# SPDX-License-Identifier: BSD-2-Clause
"""Who answers in the place of a program can say nothing in the name of another one."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dashboards import generate, reference, rules
from testing.prometheus import running
from testing.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CONFIGURED: dict[str, Any] = yaml.safe_load((rules.FILES[0].parent / "prometheus.yml").read_text())
JOBS: dict[str, Any] = {job["job_name"]: job for job in CONFIGURED["scrape_configs"]}
OF = {"shai-monitor": "The monitor", "shai-operator": "The operator", "shai-loadgen": "The load generator"}
"""The program of each job."""
MEMBER = 'job="shai-monitor",instance="10.0.0.7:8643",cluster="other",namespace="victim",pool="syse",member="syse-0"'
FORGED = f"""
shai_audit_verified{{{MEMBER}}} 0
shai_ready 0
up{{{MEMBER}}} 0
ALERTS{{alertname="ShaiAuditNotVerifiable",alertstate="firing"}} 1
member:shai_enforcement:available{{{MEMBER}}} 0
shai_member_ready{{{MEMBER}}} 1
shai_load_violations_total{{{MEMBER}}} 4711
process_start_time_seconds{{{MEMBER}}} 1
"""


class Forger(BaseHTTPRequestHandler):
    """Answers a scrape with what it likes."""

    said: Iterable[str] = ()
    elsewhere: str | None = None

    def do_GET(self) -> None:
        if self.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.elsewhere)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # Prometheus has heard enough
            for part in self.said:
                self.wfile.write(part.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def forging(said: Iterable[str] = (), elsewhere: str | None = None) -> Iterator[str]:
    forger = type("Saying", (Forger,), {"said": said, "elsewhere": elsewhere})
    with ThreadingHTTPServer(("127.0.0.1", 0), forger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def series(url: str, selector: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote(selector)}") as answer:  # noqa: S310
        return [found["metric"] for found in json.load(answer)["data"]["result"]]


def scraping(job: str, address: str, whose: dict[str, str]) -> str:
    """Return the configuration of a Prometheus that scrapes an address as this job, with the labels of its target."""
    targets = {"static_configs": [{"targets": [address], "labels": whose}]}
    config = {key: value for key, value in JOBS[job].items() if key != "file_sd_configs"} | targets
    return yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [config]})


def believed(job: str, place: Path, whose: dict[str, str]) -> list[dict[str, str]]:
    """Return what a Prometheus believes that scrapes a forger as this job, with the labels of its target."""
    with forging([FORGED]) as address:
        with running(place / "data", scraping(job, address, whose)) as url:
            until(lambda: series(url, "process_start_time_seconds"), "it is scraped")
            found = series(url, '{__name__!~"scrape_.*",job=~".+"}')
        wanted = {"job": job, "instance": address, **whose}
        assert all(wanted.items() <= one.items() for one in found)
        return found


def test_who_answers_for_the_operator_speaks_for_nobody_else(tmp_path: Path) -> None:
    found = {one["__name__"]: one for one in believed("shai-operator", tmp_path, {"cluster": "shai"})}
    assert set(found) == {"up", "process_start_time_seconds", "shai_member_ready"}
    about = {key: value for key, value in found["shai_member_ready"].items() if key not in {"instance", "__name__"}}
    assert about == {
        "job": "shai-operator", "cluster": "shai", "namespace": "victim", "pool": "syse", "member": "syse-0",
    }  # fmt: skip


@pytest.mark.parametrize("whose", [{}, {"cluster": "shai"}, {"cluster": "shai", "namespace": "search"}])
def test_who_answers_for_the_load_generator_speaks_for_nobody_else(tmp_path: Path, whose: dict[str, str]) -> None:
    found = {one["__name__"]: one for one in believed("shai-loadgen", tmp_path, whose)}
    assert set(found) == {"up", "process_start_time_seconds", "shai_load_violations_total"}
    said = found["shai_load_violations_total"]
    assert set(said) - {"__name__", "job", "instance"} == set(whose)


@pytest.mark.parametrize("job", ["shai-operator", "shai-loadgen"])
def test_who_answers_for_a_program_sends_prometheus_nowhere_else(tmp_path: Path, job: str) -> None:
    with (
        forging([FORGED]) as other,
        forging(elsewhere=f"http://{other}/metrics") as address,
        running(tmp_path / "data", scraping(job, address, {})) as url,
    ):
        until(lambda: series(url, "up"), "it is scraped")
        assert series(url, "up == 0")
        assert not series(url, "process_start_time_seconds")


class Endless:
    """An answer without an end, again for each scrape."""

    def __iter__(self) -> Iterator[str]:
        return itertools.repeat("# " + "x" * 65_534 + "\n")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([f'shai_load_violations_total{{scenario="s{number}"}} 1\n' for number in range(3_000)], "sample limit"),
        ([f'shai_load_violations_total{{result="{"r" * 1_000}"}} 1\n'], "label_value_length_limit"),
        (Endless(), "body size limit"),
    ],
    ids=["many", "long", "endless"],
)
def test_one_answer_for_the_load_generator_cannot_fill_prometheus(
    tmp_path: Path, said: Iterable[str], why: str
) -> None:
    with forging(said) as address, running(tmp_path / "data", scraping("shai-loadgen", address, {})) as url:
        until(lambda: series(url, "up == 0"), "its scrape has failed")
        with urllib.request.urlopen(f"{url}/api/v1/targets") as answer:  # noqa: S310
            (target,) = json.load(answer)["data"]["activeTargets"]
        assert why in target["lastError"]
        assert not series(url, "shai_load_violations_total")


def test_what_is_said_for_the_load_generator_ends_with_it_and_is_no_text_of_an_alert(tmp_path: Path) -> None:
    later = int(time.time() + 590) * 1000
    said = [
        f'shai_load_violations_total{{pipeline="syse"}} 1 {later}\n',
        'shai_load_violations_total{pipeline="syse of the production cluster"} 1\n',
        'shai_load_violations_total{scenario="steady\\nCall 555-0100"} 1\n',
        f'shai_load_violations_total{{pipeline="{"p" * 64}"}} 1\n',
        'shai_load_violations_total{pipeline="syse",version="Call 555-0100"} 1\n',
    ]
    every = itertools.chain.from_iterable(group["rules"] for group in rules.groups())
    (violated,) = [rule for rule in every if rule.get("alert") == "ShaiPolicyViolated"]
    with forging(said) as address, running(tmp_path / "data", scraping("shai-loadgen", address, {})) as url:
        until(lambda: series(url, "up == 1"), "it is scraped")
        assert len(series(url, "shai_load_violations_total")) == 2
        assert series(url, violated["expr"]) == [{"job": "shai-loadgen", "instance": address, "pipeline": "syse"}]
        assert series(url, "time() - timestamp(shai_load_violations_total) >= 0"), "no sample is of the future"


def kept(job: str) -> re.Pattern[str]:
    """Return which metrics a job keeps."""
    (keep,) = [
        one
        for one in JOBS[job]["metric_relabel_configs"]
        if one.get("action") == "keep" and one["source_labels"] == ["__name__"]
    ]
    return re.compile(keep["regex"])


@pytest.mark.parametrize("job", ["shai-operator", "shai-loadgen"])
def test_a_job_keeps_the_metrics_of_its_program_and_no_others(job: str) -> None:
    tables = {program.title: [metric["name"] for metric in program.table()] for program in reference.PROGRAMS}
    for title, names in tables.items():
        for name in names:
            assert bool(kept(job).fullmatch(name)) == (title == OF[job]), name
    assert kept(job).fullmatch("process_cpu_seconds_total")


def test_all_labels_of_the_load_generator_are_kept() -> None:
    (keep,) = [one for one in JOBS["shai-loadgen"]["metric_relabel_configs"] if one.get("action") == "labelkeep"]
    (generator,) = [program for program in reference.PROGRAMS if program.title == OF["shai-loadgen"]]
    assert {label["name"] for metric in generator.table() for label in metric["labels"]} < set(keep["regex"].split("|"))


def test_no_label_of_the_operator_is_one_of_its_target() -> None:
    """Such a label would be dropped; but the namespace is given back."""
    of_targets = {"job", "instance", "cluster", "pod", "container", "endpoint", "service", "node"}
    (operator,) = [program for program in reference.PROGRAMS if program.title == OF["shai-operator"]]
    assert not of_targets & {label["name"] for metric in operator.table() for label in metric["labels"]}


@pytest.mark.parametrize("file", ["pods/podmonitor.yaml", "services/servicemonitor.yaml"])
def test_the_prometheus_operator_gets_the_same_limits(file: str) -> None:
    spec = yaml.safe_load((generate.ROOT / "deploy" / "monitoring" / file).read_text())["spec"]
    ((made,),) = [spec[key] for key in ("podMetricsEndpoints", "endpoints") if key in spec]
    names = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    relabelings = [{names.get(key, key): value for key, value in one.items()} for one in made["metricRelabelings"]]
    assert relabelings == JOBS["shai-operator"]["metric_relabel_configs"]
    assert made["honorTimestamps"] is JOBS["shai-operator"]["honor_timestamps"] is False
    assert made["followRedirects"] is JOBS["shai-operator"]["follow_redirects"] is False
    assert "honorLabels" not in made


def test_the_page_shows_the_same_limits() -> None:
    page = (generate.ROOT / "docs" / "operations.md").read_text()
    (block,) = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "shai-operator" in block]
    jobs = {job["job_name"]: job for job in yaml.safe_load(block)["scrape_configs"]}
    for field in ("metric_relabel_configs", "honor_timestamps", "follow_redirects"):
        assert jobs["shai-operator"][field] == JOBS["shai-operator"][field]
