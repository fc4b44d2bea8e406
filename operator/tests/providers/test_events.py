# SPDX-License-Identifier: BSD-2-Clause
"""Progress and failures from ansible-runner's events."""

from __future__ import annotations

from typing import Any

import pytest

from shai_operator.providers.events import Record, unreachable
from shai_operator.providers.interface import Host, Login, Progress, Reason

HOST = Host("rack-1", "192.0.2.9", Login("shai", "key", "ssh-ed25519 AAAA", port=2222))


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def failed(host: str, **result: Any) -> dict[str, Any]:
    return event("runner_on_failed", host=host, res=result)


def observed(*events: dict[str, Any], total: int = 3) -> tuple[Record, list[Progress]]:
    record = Record(HOST, total)
    return record, [moved for event in events if (moved := record.observe(event)) is not None]


def test_progress() -> None:
    task = event("playbook_on_task_start", task="Copy")
    handler = event("playbook_on_handler_task_start", task="Restart")
    _, progress = observed(event("playbook_on_play_start", name="Install"), task, handler, total=2)
    assert progress == [Progress("rack-1", "Install", "Copy", 1, 2), Progress("rack-1", "Install", "Restart", 2, 2)]


def test_progress_never_passes_its_total() -> None:
    _, progress = observed(*[event("playbook_on_task_start", task="T")] * 5, total=2)
    assert [(step.done, step.total) for step in progress] == [(1, 2), (2, 2), (2, 2), (2, 2), (2, 2)]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"msg": "no space left"}, "task 'Copy': no space left"),
        ({"msg": "non-zero return code", "stderr": "cp: no\n  such file"}, "non-zero return code: cp: no such file"),
        ({"msg": "bad: cp", "stderr": "cp"}, "'Copy': bad: cp"),
        ({"stdout": "only this"}, "'Copy': only this"),
        (
            {"msg": "One or more items failed", "results": [{"item": 1}, {"failed": True, "msg": "inner"}]},
            "'Copy': inner",
        ),
        ({"msg": "MODULE FAILURE", "module_stderr": "no python"}, "MODULE FAILURE: no python"),
        ({}, "without a message"),
        ({"msg": "rc", "stderr": "begin " + "x" * 5000 + " end"}, " end"),
    ],
)
def test_messages(result: dict[str, Any], says: str) -> None:
    record, _ = observed(event("playbook_on_task_start", task="Copy"), failed("web-0", **result))
    failure = record.failures["web-0"]
    assert failure.reason is Reason.PLAYBOOK_FAILED
    assert failure.message.startswith("host rack-1: task 'Copy': ")
    assert says in failure.message
    assert len(failure.message) < 1200


def test_a_failure_that_was_mended_or_ignored_is_none() -> None:
    ignored = event("runner_on_failed", host="web-1", res={"msg": "x"}, ignore_errors=True)
    end = event(
        "playbook_on_stats", processed={"web-0": 1, "web-1": 1, "web-2": 1}, failures={"web-2": 1}, changed={"web-0": 2}
    )
    record, _ = observed(failed("web-0", msg="mended"), ignored, failed("web-2", msg="lasting"), end)
    assert set(record.failures) == {"web-2"}
    assert record.changed == {"web-0"}


@pytest.mark.parametrize(
    ("said", "reason", "says"),
    [
        ("Failed to connect: Host key verification failed.", Reason.HOST_KEY_MISMATCH, "ssh-keyscan"),
        ("WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", Reason.HOST_KEY_MISMATCH, "another host key"),
        ("shai@192.0.2.9: Permission denied (publickey).", Reason.AUTHENTICATION_FAILED, "~shai/.ssh/authorized_keys"),
        ("connect to host 192.0.2.9 port 2222: Connection refused", Reason.HOST_UNREACHABLE, "Connection refused"),
        ("Connection timed out", Reason.HOST_UNREACHABLE, "check that it runs"),
    ],
)
def test_unreachable(said: str, reason: Reason, says: str) -> None:
    failure = unreachable(HOST, said)
    assert failure.reason is reason
    assert says in failure.message
    assert "host rack-1 (192.0.2.9 port 2222)" in failure.message


@pytest.mark.parametrize(
    ("role", "reason", "says"),
    [
        ("pool_vm", Reason.HOST_UNREACHABLE, "host rack-1 (192.0.2.9 port 2222) cannot be reached"),
        ("shai.pools.pool_vm", Reason.HOST_UNREACHABLE, "host rack-1 (192.0.2.9 port 2222) cannot be reached"),
        ("freebsd_guest", Reason.GUEST_UNREACHABLE, "virtual machine web-vm-0 on host rack-1 cannot be reached"),
        ("", Reason.GUEST_UNREACHABLE, "virtual machine web-vm-0 on host rack-1 cannot be reached"),
    ],
)
def test_what_is_unreachable_is_named(role: str, reason: Reason, says: str) -> None:
    """Items of a loop say why; a machine's own tasks on its host do not reach the machine."""
    items = [{"item": "a", "changed": True}, {"item": "b", "unreachable": True, "msg": "broken pipe"}]
    result = {"unreachable": True, "msg": "All items completed", "results": items}
    record = Record(HOST, 3, {"web-vm-0": "web-vm-0"})
    record.observe(event("runner_on_unreachable", host="web-vm-0", role=role, res=result))
    failure = record.failures["web-vm-0"]
    assert (failure.reason, says in failure.message) == (reason, True)
    assert "broken pipe" in failure.message


def test_nothing_happened_is_explained() -> None:
    record, _ = observed(event("playbook_on_stats", processed={}))
    assert "no hosts matched" in record.explain().message
    record, _ = observed({"event": "verbose", "stdout": "ERROR! the playbook could not be found"})
    assert "could not be found" in record.explain().message
