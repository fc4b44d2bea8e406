# SPDX-License-Identifier: BSD-2-Clause
"""``shai task learn`` with the log of a monitor: a run in mode audit becomes a Task that suffices in mode shai."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.tests.diaries import Diaries

BOBS = ["/diary/bob/1.txt", "/diary/bob/2.txt"]


def last_run(diaries: Diaries) -> list[str]:
    """Return what the courier has printed of each document in its last run: its text, or why it could not read it."""
    text = diaries.call("task", "log", "diaries", "courier")["text"]
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line][-len(BOBS) :]


def test_a_run_in_mode_audit_becomes_a_task_that_suffices(start: Callable[..., Diaries]) -> None:
    """The courier is declared to read alice's, with her taint, and reads bob's."""
    diaries = start(friends=[], documents=BOBS, mode="audit")
    diaries.deliver()
    assert last_run(diaries) == ["dear diary"] * len(BOBS)
    learnt: dict[str, Any] = diaries.call("task", "learn", "diaries", "courier", "-f", diaries.base / "manifests.yaml")
    assert (learnt["reads"], learnt["taint"], learnt["refused"], learnt["uncovered"]) == (["bob"], True, [], [])
    assert learnt["task"]["spec"]["reads"] == ["alice", "bob"]
    assert learnt["task"]["spec"]["taint"] == {"name": "diary", "arguments": {"owner": "bob"}}

    # In mode shai the declared Task is refused them, and the one that was learnt is not.
    diaries.mode = "shai"
    diaries.prepare()
    diaries.deliver()
    assert last_run(diaries) == ["Permission denied"] * len(BOBS)
    (diaries.base / "learnt.yaml").write_text(yaml.safe_dump(learnt["task"]))
    diaries.call("apply", "-f", diaries.base / "learnt.yaml")
    diaries.call("analyze")
    diaries.deliver()
    assert last_run(diaries) == ["dear diary"] * len(BOBS)
