# SPDX-License-Identifier: BSD-2-Clause
"""A failure of each task that installs, reads and removes members on Linux, and what is said of it.

test_local.py shows that the run after a failure goes on from there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from shai_operator.providers import events, process
from shai_operator.providers.interface import Host, Reason
from shai_operator.providers.playbooks import Job, Playbooks
from tests.providers import failing
from tests.providers.failing import CANARY, CAUSE
from tests.providers.support import quiet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from shai_operator.providers.interface import Failure

LOCAL = {"Pack the image", "Sign the request", "Read when the certificate ends"}
"""The tasks that run on the operator's machine."""


async def test_the_failure_of_each_task_names_the_thing_the_cause_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages are those of statuses: an Outcome has them as they are."""
    tasks = failing.all_failing(tmp_path / "collection")
    monkeypatch.setattr(process, "COLLECTION", tmp_path / "collection")
    said: list[Failure] = []

    def observe(record: events.Record, event: Mapping[str, Any]) -> Any:
        data = {**(event.get("event_data") or {})}
        if data.pop("ignore_errors", None) and event["event"] == "runner_on_failed":
            observed(record, {**event, "event_data": data})
            said.append(record.failures[data["host"]])
            return None
        return observed(record, event)

    observed = events.Record.observe
    monkeypatch.setattr(events.Record, "observe", observe)
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"all": {"vars": variables, "children": {"members": {"hosts": {"web-0": {}}}}}}
    job = Job("failing.yml", Host("rack-1", "127.0.0.1"), lambda _: json.dumps(hosts), files={})
    runs = Playbooks(directory=tmp_path / "runs")
    report = await runs.run(job, quiet, asyncio.Event())
    await runs.close()
    assert report.failure is None, "the failures were ignored"
    assert len(said) == len(tasks) > 50
    for failure, task in zip(said, tasks, strict=True):
        assert failure.reason is Reason.PLAYBOOK_FAILED
        assert failure.message.startswith(f"host rack-1: task {task.task!r}: "), (task, failure)
        assert CAUSE in failure.message or "/srv/x cannot be started: Permission denied" in failure.message
        assert failure.message.count("the next run, which the operator starts itself, goes on from there") == 1
        assert ("on the operator's machine" in failure.message) is (task.task in LOCAL), task
        assert failure.message.isprintable()
        for hidden in (CANARY, "Traceback", "Task failed", "Module failed"):
            assert hidden not in failure.message
