# SPDX-License-Identifier: BSD-2-Clause
"""Which fields take texts that mean something to templates, shells, options, paths or terminals, and who reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from crds.tests.objects import RESOURCES
from testing.cluster import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = (
    *("{{ 7*7 }}", "$(id)", "`id`", "-x", "../x", "a\nb", "\x1b[31m", "a'b", 'a"b', "a;b", "a b", "a%b", "a\\b"),
    *("/x/{{ 7*7 }}", "/x/`id`", "/x/a\nb", "/x/a b"),
)
MONITOR = "the monitor's parser, in a bundle of JSON: no shell and no template reads it"
PROCESS = "execve, without a shell: the task itself decides what it means, as its own user"
HOST = "Ansible, as data, and quoted where a shell reads it (test_life_of_two_members has such texts)"
RULES = "rules of the definition refuse them (test_refused.py)"
ADMISSION = "the webhooks refuse what does not mean anything (test_definitions.py, test_outages.py)"
QUOTED = "messages only"
NAMES = "the monitor, in JSON, as names that it compares and records; who shows a record escapes them"

FREE = {
    "AnalysisRun.scheduledTime": "the API server, which refuses all but times",
    "Benchmark.thresholds[]": ADMISSION,
    "FactSource.file.path": MONITOR,
    "FactSource.http.caFile": MONITOR,
    "FactSource.http.url": RULES,
    "FactSource.inline[].conduit": MONITOR,
    "FactSource.inline[].says": MONITOR,
    "FactSource.inline[].tuples[][]": MONITOR,
    "FactSource.redis.keys[].conduit": MONITOR,
    "FactSource.redis.keys[].pattern": MONITOR,
    "FactSource.redis.keys[].says": MONITOR,
    "FactSource.redis.socket": MONITOR,
    "FactSource.redis.stream.key": MONITOR,
    "FactSource.relations[].arguments[].name": MONITOR,
    "FactSource.relations[].conduits[]": MONITOR,
    "FactSource.relations[].name": MONITOR,
    "JailPool.data.source": HOST,
    "JailPool.hosts[].hostKey": RULES,
    "JailPool.hosts[].privateKeySecret.key": QUOTED,
    "JailPool.keyValue.seed": HOST,
    "JailPool.network.addresses": RULES,
    "JailPool.network.gateway": RULES,
    "JailPool.network.machines": RULES,
    "JailPool.network.nameservers[]": RULES,
    "JailPool.network.subnet": RULES,
    "JailPool.runtimes[].paths[]": HOST,
    "JailPool.variables[].value": HOST,
    "JailPool.virtualMachine.authorizedKeys[]": RULES,
    "JailPool.virtualMachine.mirror": RULES,
    "MemberReading.audit.conduit": NAMES,
    "MemberReading.audit.principal": NAMES,
    "MemberReading.audit.since": "the API server, which refuses all but times",
    "MemberReading.explain.conduit": NAMES,
    "MemberReading.explain.principal": NAMES,
    "MemberReading.explain.region": NAMES,
    "MemberReading.log.principal": NAMES,
    "MemberReading.log.region": NAMES,
    "MemberReading.user": "the API server, which refuses all but its user's name (test_readings.py)",
    "OfflineAnalysis.schedule": RULES,
    "OfflineAnalysis.timeZone": ADMISSION,
    "Pipeline.conduits[].access.read[]": MONITOR,
    "Pipeline.conduits[].access.write[]": MONITOR,
    "Pipeline.conduits[].listen": RULES,
    "Pipeline.conduits[].paths[].choices[].by": MONITOR,
    "Pipeline.conduits[].paths[].choices[].policy.arguments{}": MONITOR,
    "Pipeline.conduits[].paths[].path": MONITOR,
    "Pipeline.conduits[].paths[].policy.arguments{}": MONITOR,
    "Pipeline.conduits[].policy.arguments{}": MONITOR,
    "Pipeline.conduits[].service": RULES,
    "Pipeline.expect[].from.conduit": MONITOR,
    "Pipeline.expect[].from.parameters[]": MONITOR,
    "Pipeline.expect[].from.says": MONITOR,
    "Pipeline.keyValue.socket": MONITOR,
    "Pipeline.parameters[].from.conduit": MONITOR,
    "Pipeline.parameters[].from.says": MONITOR,
    "Pipeline.variables[].value": MONITOR,
    "Policy.text": MONITOR,
    "PolicyRevision.text": MONITOR,
    "Principal.attributes[].name": MONITOR,
    "Principal.attributes[].value": MONITOR,
    "Principal.publicKey": RULES,
    "Principal.region": MONITOR,
    "Task.command[]": PROCESS,
    "Task.environment[].value": PROCESS,
    "Task.runtime[]": RULES,
    "Task.taint.arguments{}": MONITOR,
}
"""By field: who reads it. All others take none of the words."""


def texts(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields beneath a schema that take texts of any form."""
    if schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string"):
        yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from texts(field, f"{path}.{name}")
    for beneath, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(beneath), dict):
            yield from texts(schema[beneath], path + mark)


def test_a_field_that_takes_any_text_says_who_reads_it() -> None:
    """What matches a pattern is asked here; what rules refuse, the API server is asked in test_refused.py."""
    free = set()
    for resource in RESOURCES.values():
        definition = yaml.safe_load((ROOT / "crds/bases" / resource.file).read_text())
        spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for path, schema in texts(spec, resource.kind):
            pattern = schema.get("pattern", "")
            if "enum" not in schema and any(re.search(pattern, word) for word in WORDS):
                assert not (schema.get("x-kubernetes-int-or-string") and pattern), path
                free.add(path)
                assert FREE.get(path) != RULES or "x-kubernetes-validations" in schema or path == "Task.runtime[]", path
    assert free == set(FREE)
