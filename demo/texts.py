# SPDX-License-Identifier: BSD-2-Clause
"""The texts that the demo prints between its steps and at its end."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from demo import overlay, stages
from loadgen.datasets import population
from loadgen.results import tables
from loadgen.stacks.monitor import Monitor
from loadgen.verifying import checks, verification

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from demo.kubernetes import Cluster
    from demo.prometheus import Server
    from demo.workspace import Workspace

WIDTH = tables.WIDTH
NO_PROMETHEUS = "      Prometheus is not installed (`apt-get install prometheus`): the report has nothing over time"
_CAUSES = 3


def say(console: Console, lines: Iterable[str]) -> None:
    """Print lines without wrapping them, so that they can be copied."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def folded(text: str, indent: str = "  ") -> str:
    """Wrap a sentence."""
    # A path or a command line is not wrapped: it would no longer work.
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def analysis(run: Mapping[str, Any]) -> list[str]:
    """Return the expected accesses of an AnalysisRun: how many are granted, refused, and undecided."""
    found = run["status"]
    causes = [(cause, entry) for entry in found.get("accesses") or () for cause in entry.get("refusedBecause") or ()]
    causes.sort(key=lambda pair: -pair[0]["count"])
    counts = {kind: f"{found[kind]:,}" for kind in ("expected", "granted", "refused", "undecided")}
    width = max(map(len, counts.values()))
    return [
        f"$ kubectl describe analysisrun {run['metadata']['name']}   # says in short:",
        f"{counts['expected']} accesses are expected of the tasks",
        f"  granted    {counts['granted']:>{width}}  they need no monitor",
        f"  refused    {counts['refused']:>{width}}  policies forbid them, and are meant to",
        *(f"             {cause['count']:>{width},}  {_cause(cause, entry)}" for cause, entry in causes[:_CAUSES]),
        f"  undecided  {counts['undecided']:>{width}}  the monitor decides when they happen",
        *(folded(f"warning: {warning['message']}") for warning in found.get("warnings") or ()),
    ]


def _cause(cause: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    policy = f"policy {cause['policy']}" if cause.get("policy") else "no policy"
    return f"{policy}, where {entry['task']} {entry['access']}s {entry['conduits']}"


def benchmark(cluster: Cluster, found: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return a benchmark as kubectl shows it, its table, and its results."""
    data = cluster.get("configmap", found["status"]["results"])["data"]
    shown = cluster.run("get", "benchmark", overlay.BENCHMARK).rstrip().splitlines()
    return ["$ kubectl get benchmark", *shown, "", *data["table.txt"].rstrip().splitlines()], json.loads(
        data["results.json"]
    )


def leak(found: dict[str, Any]) -> list[str]:
    """Return who finds which document, and the result of the leak attempt."""
    return [folded(line.strip(), " " * (len(line) - len(line.lstrip()))) for line in verification.findings(found)]


def conclusion(results: dict[str, Any], found: dict[str, Any], following: list[str]) -> list[str]:
    """Return the cost, what was stopped, and the next commands."""
    stopped = (
        "A search engine that was broken on purpose gave alice a private document of bob's in mode baseline, "
        f"without enforcement. In mode shai she did not get it: policy {found['leak']['audit']['policy']} forbids it."
    )
    return [
        "",
        "What it cost",
        folded(tables.headline(results)),
        "What was stopped",
        folded(stopped),
        "What to type next",
        *(f"  {line}" for line in following),
    ]


def next_commands(place: Workspace) -> list[str]:
    """Return the commands to type after a demo that has ended."""
    return [
        f"xdg-open {place.report}   # all of this, with charts",
        "make demo KEEP=1            # leaves it running: a search page with logins, kubectl, rollouts",
        "make bench                  # what else can be measured",
        "less docs/guide.md          # a pipeline of your own",
    ]


def links(place: Workspace, server: Server | None) -> list[str]:
    """Return the pages to open while the demo stays up, and the command that makes load."""
    shown = [("search page", f"http://{overlay.HOST}:{overlay.PORT}")]
    if server is not None:
        shown.append(("Prometheus", f"{server.url}/alerts"))
    shown.append(("report", f"file://{place.report}"))
    return [
        *(f"{name:<11}  {url}" for name, url in shown),
        "load         .venv/bin/locust -f loadgen/scenarios/spike.py   # or make scenario NAME=spike",
    ]


def things_to_try(cluster: Cluster, place: Workspace) -> list[str]:
    """Return the commands to type while the demo stays up."""
    people = population.load(place.data)
    document = checks.private_document(place.data, "bob")
    command = Monitor(place.shai, stages.socket(place)).command
    return [
        f"Log in at the search page with a demo key, and search “{document.title}” as alice and as bob.",
        *(f"  {name:5} {people[name].seed.hex()}" for name in ("alice", "bob")),
        "In another terminal:",
        f"  export KUBECONFIG={cluster.kubeconfig}",
        f"  alias kubectl='{cluster.kubectl} kubectl'",
        "  kubectl get shai                   # everything there is; kubectl describe says why",
        f"  {command('explain', '--conduit', document.conduit, '--principal', 'alice')}",
        f"  {command('audit', '--principal', 'alice')}",
        "  less docs/rollout.md               # a wrong policy, and the canary that stops it",
        "Ctrl-C here ends the demo and removes what it has installed.",
    ]
