# SPDX-License-Identifier: BSD-2-Clause
"""Valid objects: the examples, the smallest with their defaults, and the largest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from crds.tests.objects import ABSENT, BHYVE, SPECS, Change, create, good, path, try_create
from testing.cluster import ROOT

if TYPE_CHECKING:
    from testing.cluster import Cluster

EXAMPLES = ROOT / "crds" / "examples"
LOCAL: tuple[Change, ...] = (("provider", "local"), ("hosts", ABSENT))
POLICY = {"name": "p"}


@pytest.mark.parametrize("directory", ["kinds", "minimal", "syse"])
def test_the_examples_are_accepted(devcluster: Cluster, namespace: str, directory: str) -> None:
    # Strict, because otherwise a field that the schema does not have is dropped silently.
    apply = ("apply", "-n", namespace, "--validate=strict", "-k", str(EXAMPLES / directory), "-o", "json")
    first, second = (json.loads(devcluster.kubectl(*apply))["items"] for _ in range(2))
    assert {obj["apiVersion"] for obj in first} == {"shai.dev/v1alpha1"}
    # kubectl sends lists again if their items have defaults; this must not count as a change.
    versions = [[(obj["kind"], obj["metadata"]["resourceVersion"]) for obj in objects] for objects in (first, second)]
    assert versions[0] == versions[1]


LEFT_OUT = {
    "TaskRun": {"trigger"},
    "AnalysisRun": {"offlineAnalysis", "scheduledTime", "trigger", "bundle", "deadlineSeconds"},  # the operator's
    "JailPool": {"maxMembers"},
    "Task": {"runtime"},  # refused
}
"""Fields of specs that no example has."""


def test_the_examples_have_every_kind_and_every_field() -> None:
    shown: dict[str, list[dict[str, Any]]] = {}
    for file in (EXAMPLES / "kinds").glob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text()):
            shown.setdefault(document["kind"], []).append(document)
    for kind in SPECS:
        definition = yaml.safe_load(next((ROOT / "crds" / "bases").glob(f"{_plural(kind)}.yaml")).read_text())
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        given = {field for document in shown[kind] for field in document["spec"]}
        assert set(schema["properties"]) - given <= LEFT_OUT.get(kind, set()), kind


def _plural(kind: str) -> str:
    return path(kind, "x").rpartition("/")[2]


CASES: dict[str, tuple[str, tuple[Change, ...]]] = {
    "a policy of the largest size": ("Policy", (("text", "policy p { read :- true. }".ljust(65536)),)),
    "steps of numbers and percentages": (
        "Policy",
        (("rollout", {"steps": [{"members": m} for m in (1, "5%", "9%", 3, "10%", "99%", "100%", 256)]}),),
    ),
    "no steps": ("Policy", (("rollout", {"steps": []}),)),
    "facts of texts and numbers": (
        "FactSource",
        (("file", ABSENT), ("inline", [{"conduit": "c", "says": "s", "tuples": [["1", 1, -(2**53)], []]}])),
    ),
    "an address from a variable": ("FactSource", (("file", ABSENT), ("http", {"url": "$(FACTS)/friends"}))),
    "an @ in a query": ("FactSource", (("file", ABSENT), ("http", {"url": "https://a.example/?who=b@c"}))),
    "all forms of allowed sources": (
        "JailPool",
        (
            (
                "allowedSources",
                [
                    *("https://facts.example.org", "http://facts.example.org:8080/a/b/", "https://a.example/x.jsonl"),
                    *(
                        "http://127.0.0.1:9000",
                        "http://[::1]:9000/",
                        "http://localhost",
                        "unix:/run/redis/with space.sock",
                    ),
                ],
            ),
        ),
    ),
    "no sources": ("JailPool", (("allowedSources", []),)),
    "a principal of two namespaces": ("Principal", (("allowedNamespaces", {"names": ["a", "b"]}),)),
    "a principal of none": ("Principal", (("allowedNamespaces", {"names": []}),)),
    "an empty list that belongs to another kind": ("Pipeline", (("conduits.2.paths", []),)),
    "a switch of another kind that is off": ("Pipeline", (("conduits.2.ingress", False),)),
    "an address of version 6": ("Pipeline", (("conduits.4.listen", "[::1]:8640"),)),
    "an address with a variable": ("Pipeline", (("conduits.4.listen", "$(MEMBER_ADDRESS):8640"),)),
    "typed conduits": (
        "Pipeline",
        (
            (
                "conduits.5",
                {"name": "log", "kind": "file", "type": "access-log", "paths": [{"path": "/log", "policy": POLICY}]},
            ),
            (
                "conduits.6",
                {"name": "ids", "kind": "file", "type": "conduit-ids", "paths": [{"path": "/i/{u}", "policy": POLICY}]},
            ),
            (
                "conduits.7",
                {
                    "name": "interests",
                    "kind": "tuple",
                    "type": "topics",
                    "access": {"read": ["GET"]},
                    "paths": [{"path": "i:{u}", "policy": POLICY}],
                },
            ),
        ),
    ),
    "many sessions": ("Pipeline", (("conduits.4.sessions", 4096),)),
    "a service with a name": ("Pipeline", (("conduits.4.service", "search.example.org:443"),)),
    "a service with an address": ("Pipeline", (("conduits.4.service", "[2001:db8::1]:443"),)),
    "a service with a variable": ("Pipeline", (("conduits.4.service", "$(NAME)"),)),
    "no conduits": ("Pipeline", (("conduits", ABSENT), ("keyValue", ABSENT), ("expect", ABSENT))),
    "patterns": (
        "Pipeline",
        (
            (
                "conduits.5",
                {
                    "name": "more",
                    "kind": "file",
                    "paths": [
                        {"path": path, "policy": POLICY}
                        for path in ("/", "/**", "/a/*/{b}/c-{d}.txt", "/a b/ü", "/{_x9}/**")
                    ],
                },
            ),
        ),
    ),
    "a local pool": ("JailPool", LOCAL),
    "no members": ("JailPool", (*LOCAL, ("replicas", 0))),
    "as many members as addresses": (
        "JailPool",
        (*LOCAL, ("replicas", 6), ("network", {"addresses": "127.0.10.0/29"})),
    ),
    "the largest pool": ("JailPool", (*LOCAL, ("replicas", 256), ("network", {"addresses": "127.1.0.0/16"}))),
    "addresses of version 6": ("JailPool", (*LOCAL, ("replicas", 200), ("network", {"addresses": "fd00::/112"}))),
    "a host by its name and another kind of key": (
        "JailPool",
        (("hosts.0.address", "host1.example.org"), ("hosts.0.hostKey", "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTI=")),
    ),
    "runtimes with every kind of path": (
        "JailPool",
        (
            (
                "runtimes",
                [
                    {"name": "java", "paths": ["$(JAVA_HOME)", "$(IMAGE)/jre", "/opt/$(NAME)/lib", "/lib"]},
                    {
                        "name": "0x1f",
                        "paths": ["/opt/it's", '/a "b" c', "/{{ 7 * 7 }}", "/$HOME", "/-x", "/a=b;`c`", "/ü"],
                    },
                ],
            ),
        ),
    ),
    "as many runtimes as the schema allows": (
        "JailPool",
        (("runtimes", [{"name": f"r{n}", "paths": [f"/{'p' * 400}/{i}" for i in range(64)]} for n in range(16)]),),
    ),
    "a task with a runtime": ("Task", (("runtimeName", "java"),)),
    "jails in virtual machines": ("JailPool", BHYVE),
    "the most members in the fewest virtual machines": (
        "JailPool",
        (*BHYVE, ("jails", 1), ("replicas", 126)),
    ),
    "virtual machines with addresses of version 6": (
        "JailPool",
        (*BHYVE, ("network", {"addresses": "fd00::/112", "machines": "fd01::/112", "gateway": "fd01::ffff"})),
    ),
    "all about virtual machines": (
        "JailPool",
        (
            *BHYVE,
            ("virtualMachine.checksum", "0f" * 64),
            ("virtualMachine.mirror", "https://mirror.example.org/freebsd"),
            ("virtualMachine.storage", {"directory": "/var/shai-vms"}),
            ("virtualMachine.replacement", "Automatic"),
            ("network.nameservers", ["198.51.100.253", "2001:db8::53"]),
            ("network.uplink", "igb0.100"),
            ("network.subnet", "198.51.100.0/24"),
            ("network.gateway", "198.51.100.254"),
            ("jails", 8),
            ("requires", "Capsicum"),
            ("hosts.0.state", "Gone"),
        ),
    ),
    "a schedule of steps, lists and names": ("OfflineAnalysis", (("schedule", "*/15 0-5,22 1,L jan-mar mon#1"),)),
    "a scheduled run": (
        "AnalysisRun",
        (("trigger", "Schedule"), ("offlineAnalysis", "nightly"), ("scheduledTime", "2026-03-01T12:00:00Z")),
    ),
}


@pytest.mark.parametrize(("kind", "changes"), CASES.values(), ids=CASES)
def test_accepted(devcluster: Cluster, kind: str, changes: tuple[Change, ...]) -> None:
    answer = try_create(devcluster, good(kind, "", *changes), "default")
    assert answer.status_code == 201, answer.json()


def test_the_largest_pipeline_is_accepted(devcluster: Cluster, namespace: str) -> None:
    """As many conduits, paths and tasks as the schema allows, as far as etcd takes the request (1.5 MiB)."""
    tasks = [f"task{number:02}".ljust(63, "x") for number in range(64)]
    conduits = [
        {
            "name": f"conduit{number:03}".ljust(63, "x"),
            "kind": "file",
            "paths": [
                {"path": f"/{number}/{'p' * 20}{index}/**", "policy": {"name": "p", "arguments": {"owner": "o"}}}
                for index in range(55)
            ],
        }
        for number in range(256)
    ]
    obj = good("Pipeline", "", ("tasks", tasks), ("conduits", conduits), ("expect", ABSENT))
    obj["spec"]["conduits"][0]["paths"] = [{"path": f"/all/{i}", "policy": POLICY} for i in range(256)]
    obj["spec"]["conduits"][0]["paths"][0]["path"] = "/".ljust(4096, "p")
    answer = create(devcluster, obj, namespace)
    assert answer.status_code == 201, answer.text[:2000]
    stored = devcluster.request("GET", path("Pipeline", namespace, "good")).json()
    assert stored["spec"]["conduits"] == obj["spec"]["conduits"]


DEFAULTS: dict[str, dict[str, Any]] = {
    "Policy": {"mode": "Enforce", "revisionHistoryLimit": 10},
    "FactSource": {},
    "Task": {"run": "Always"},
    "Pipeline": {
        "mode": "shai",
        "revocation": "lazy",
        "pool": "default",
        "rollout": {
            "paused": False,
            "limits": {"denialsPercent": 5, "overheadPercent": 50, "closedPercent": 50, "minimumSessions": 20},
        },
        "taskRuns": {
            "retries": {"limit": 0, "backoffSeconds": 10},
            "successfulRunsHistoryLimit": 3,
            "failedRunsHistoryLimit": 1,
        },
    },
    "TaskRun": {"retries": {"limit": 0, "backoffSeconds": 10}, "cancel": False, "trigger": "Manual"},
    "JailPool": {
        "replicas": 1,
        "maxMembers": 8,
        "allowedModes": ["shai", "dynamic", "dynamic-lazy"],
        "directory": "/var/lib/shai",
        "image": "default",
        "keyValue": {"mode": "None"},
        "network": {"addresses": "127.0.10.0/24", "monitorPort": 8443},
        "update": {"maxUnavailable": 1},
        "scaleIn": {"policy": "HighestOrdinal", "drainSeconds": 30},
        "healing": {"failureThreshold": 3, "periodSeconds": 10},
    },
    "OfflineAnalysis": {
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "suspend": False,
        "scope": "All",
        "onChange": "Run",
        "successfulRunsHistoryLimit": 3,
        "failedRunsHistoryLimit": 1,
        "deadlineSeconds": 3600,
    },
    "AnalysisRun": {"scope": "All", "full": False, "trigger": "Manual", "deadlineSeconds": 3600},
    "Benchmark": {
        "scenario": "search",
        "modes": ["baseline", "dynamic", "shai"],
        "rounds": 7,
        "sliceSeconds": 3,
        "sessionLengths": [1, 8, 32, 0],
        "concurrentUsers": 24,
        "warmUpSeconds": 25,
        "workers": {"count": 1, "as": "Process"},
        "seed": 1,
        "deadlineSeconds": 3600,
    },
    "MemberReading": {"log": {"task": "t", "previous": False}},
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_what_is_left_out_has_a_default(devcluster: Cluster, kind: str) -> None:
    obj = good(kind, "", *(LOCAL if kind == "JailPool" else ()))
    assert try_create(devcluster, obj, "default").json()["spec"] == obj["spec"] | DEFAULTS[kind]


def test_defaults_within_lists(devcluster: Cluster) -> None:
    pool = try_create(devcluster, good("JailPool"), "default").json()["spec"]["hosts"][0]
    assert (pool["port"], pool["user"], pool["maxMembers"]) == (22, "root", 8)
    assert pool["privateKeySecret"]["key"] == "ssh-privatekey"
    policy = good("Policy", "", ("rollout", {"steps": [{"members": 1}]}))
    assert try_create(devcluster, policy, "default").json()["spec"]["rollout"]["steps"][0]["pauseSeconds"] == 60
    source = good("FactSource", "", ("file", ABSENT), ("http", {"url": "https://a.example"}))
    assert try_create(devcluster, source, "default").json()["spec"]["http"]["intervalSeconds"] == 30
