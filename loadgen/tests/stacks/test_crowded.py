# SPDX-License-Identifier: BSD-2-Clause
"""The pipelines that hold many live sessions."""

from __future__ import annotations

import json
from pathlib import Path

from loadgen.stacks import crowded, manifests

EXAMPLE = Path(__file__).resolve().parents[3] / "crds" / "examples" / "syse"


def test_every_session_has_a_user_and_a_worker_of_its_own() -> None:
    pipelines = crowded.plan(10_000, "127.0.0.1")
    assert [len(pipeline.people) for pipeline in pipelines] == [4096, 4096, 1808]
    assert len({person.name for pipeline in pipelines for person in pipeline.people}) == 10_000
    assert len({pipeline.address for pipeline in pipelines}) == 3


def test_a_users_only_access_rests_on_one_fact(tmp_path: Path) -> None:
    pipelines = crowded.plan(34, "127.0.0.1")
    crowded.write_data(tmp_path, pipelines)
    facts = [json.loads(line) for line in (tmp_path / "facts" / "crowd.jsonl").read_text().splitlines()]
    for pipeline in pipelines:
        for person in pipeline.people:
            fact = crowded.friendship(person)
            holding = [one for one in facts if (one["conduit"], one["says"]) == (fact["conduit"], fact["says"])]
            assert [one["tuples"].count(fact["tuple"]) for one in holding] == [1]


def test_pipelines_end_sessions_at_once_and_share_the_example_s_front_end() -> None:
    example = manifests.read(EXAMPLE)
    documents = crowded.bundle(example, crowded.plan(crowded.SESSIONS + 2, "127.0.0.1"))
    pipelines = [entry for entry in documents if entry["kind"] == "Pipeline"]
    assert {entry["spec"]["revocation"] for entry in pipelines} == {"immediate"}
    assert len({json.dumps(entry["spec"]["conduits"][0]) for entry in pipelines}) == 2, "a document has one pipeline"
    assert [entry["spec"]["conduits"][1]["sessions"] for entry in pipelines] == [4096, 2]
    command = manifests.find_task(documents, crowded.FRONT_END)["spec"]["command"]
    assert command[:-2] == manifests.find_task(example, crowded.FRONT_END)["spec"]["command"]
