# SPDX-License-Identifier: BSD-2-Clause
"""Progress and failures from ansible-runner's events."""

from __future__ import annotations

from typing import Any

import pytest

from shai_operator.providers.events import Record, unreachable
from shai_operator.providers.interface import Host, Login, Progress, Reason
from shai_operator.reconcile.member_rows import MESSAGE_LIMIT

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


TRACEBACK = """Traceback (most recent call last):
  File "/srv/x.py", line 7, in log_in
    password = "secret"
OSError: no room
"""


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
        ({"msg": "Task failed: Module failed: [Errno 13] Permission denied: b'/x'"}, "'Copy': [Errno 13] Permission"),
        ({"msg": "Unexpected AnsibleActionFail error: Could not find /x"}, "'Copy': Could not find /x"),
        (
            {"msg": "Error executing command.", "cmd": "/bin/tool -x y", "rc": 2},
            "'Copy': /bin/tool cannot be started: No",
        ),
        ({"msg": "Error executing command.", "cmd": ["/bin/tool", "y"], "rc": 13}, "/bin/tool cannot be started: Perm"),
        ({"msg": "Error executing command."}, "the command cannot be started"),
        ({"msg": "non-zero return code", "stderr": f"it says\n{TRACEBACK}"}, "return code: it says OSError: no room"),
        ({"msg": TRACEBACK}, "'Copy': OSError: no room"),
        ({"msg": "rc", "stderr": "begin " + "x" * 5000 + " end"}, " end; correct"),
        ({"msg": "rc", "stderr": "begin " + "x" * 5000 + " end"}, "'Copy': rc: begin xxx"),
    ],
)
def test_messages(result: dict[str, Any], says: str) -> None:
    record, _ = observed(event("playbook_on_task_start", task="Copy"), failed("web-0", **result))
    failure = record.failures["web-0"]
    assert failure.reason is Reason.PLAYBOOK_FAILED
    assert failure.message.startswith("host rack-1: task 'Copy': ")
    assert says in failure.message
    assert "password" not in failure.message
    assert failure.message.endswith(
        "; correct this on the host; the next run, which the operator starts itself, goes on from there"
    )
    assert len(failure.message) <= MESSAGE_LIMIT - 2 * 63, "a row has room for it, whatever the names of host and pool"


@pytest.mark.parametrize("said", ["\x1b[31mred", "half \ud800 a pair", "one\r\nline\x00", "\u202eturned"])
def test_whatever_a_host_prints_a_status_can_have_it(said: str) -> None:
    """A text with half a pair of UTF-16 would keep the whole status from being written."""
    for happened in (failed("web-0", msg=said), event("runner_on_unreachable", host="web-0", res={"msg": said})):
        record, _ = observed(event("playbook_on_task_start", task="Copy"), happened)
        assert record.failures["web-0"].message.isprintable()
    record, _ = observed({"event": "verbose", "stdout": said})
    assert record.explain().message.isprintable()


@pytest.mark.parametrize(
    ("action", "result", "machine", "says"),
    [
        ("ansible.builtin.fail", {"msg": "it is off: switch it on"}, "", "task 'Copy': it is off: switch it on"),
        ("ansible.builtin.command", {"msg": "off"}, "", "off; correct this on the host; the next run"),
        ("ansible.builtin.command", {"msg": "off"}, "web-vm-0", "off; correct this in the virtual machine; the next"),
        (
            "ansible.builtin.command",
            {"msg": "off", "_ansible_delegated_vars": {"ansible_host": "localhost"}},
            "",
            "off; correct this on the operator's machine, where this task runs; the next run",
        ),
    ],
)
def test_who_can_correct_it_is_told_where(action: str, result: dict[str, Any], machine: str, says: str) -> None:
    record = Record(HOST, 1, {"web-0": machine} if machine else {})
    record.observe(event("playbook_on_task_start", task="Copy"))
    record.observe(event("runner_on_failed", host="web-0", res=result, task_action=action))
    assert says in record.failures["web-0"].message


def command(errors: str) -> dict[str, Any]:
    return {"msg": "non-zero return code", "rc": 1, "stderr": errors, "stdout": "ClockSkew: what it prints"}


LOG = "the monitor is not ready; its log ends: web-0: StorageFull: x\nStorageFull: y"
FAILURES: list[tuple[dict[str, Any], Reason, str]] = [
    ({"msg": "StorageFull: zroot/shai is full"}, Reason.STORAGE_FULL, "host rack-1: zroot/shai is full"),
    ({"msg": " ClockSkew: an hour\n off"}, Reason.CLOCK_SKEW, "host rack-1: an hour off"),
    (command("JailStuck: web-0 does not\nstop"), Reason.JAIL_STUCK, "host rack-1: web-0 does not stop"),
    (command("tar: error\nStorageFull: no room"), Reason.STORAGE_FULL, "host rack-1: no room"),
    ({"msg": "items", "results": [{"failed": True, "msg": "ClockSkew: off"}]}, Reason.CLOCK_SKEW, "rack-1: off"),
    ({"msg": "ImageFetchFailed: " + "x" * 5000}, Reason.IMAGE_FETCH_FAILED, "host rack-1: xxx"),
    ({"msg": "EnforcementInsufficient: no module"}, Reason.ENFORCEMENT_INSUFFICIENT, "host rack-1: no module"),
    ({"msg": "StorageFullness: 7"}, Reason.PLAYBOOK_FAILED, "task 'Do': StorageFullness: 7"),
    ({"msg": "Nothing: else"}, Reason.PLAYBOOK_FAILED, "task 'Do': Nothing: else"),
    ({"msg": LOG}, Reason.PLAYBOOK_FAILED, "its log ends: web-0: StorageFull: x"),
    (command("ps says: StorageFull: x"), Reason.PLAYBOOK_FAILED, "ps says: StorageFull: x"),
    (
        command("StorageFull: says the jail\nJailStuck: web-0 does not stop"),
        Reason.JAIL_STUCK,
        "rack-1: web-0 does not",
    ),
]


@pytest.mark.parametrize(("result", "reason", "says"), FAILURES)
def test_a_role_names_the_reason_of_its_failure_and_what_it_quotes_names_none(
    result: dict[str, Any], reason: Reason, says: str
) -> None:
    record = Record(HOST, 1)
    record.observe(event("playbook_on_task_start", task="Do"))
    record.observe(event("runner_on_failed", host="web-vm-0", res=result, task_action="ansible.builtin.shell"))
    assert record.failures["web-vm-0"].reason is reason
    assert says in record.failures["web-vm-0"].message
    assert len(record.failures["web-vm-0"].message) < 1200


@pytest.mark.parametrize("action", ["ansible.builtin.copy", "community.general.jail", "template", ""])
def test_programs_that_other_modules_run_name_no_reason(action: str) -> None:
    """Such as the one that checks a file (`validate`): a member could have a machine replaced by what it prints."""
    record = Record(HOST, 1)
    record.observe(event("playbook_on_task_start", task="Do"))
    result = command("GuestUnreachable: it is broken")
    record.observe(event("runner_on_failed", host="web-vm-0", res=result, task_action=action))
    assert record.failures["web-vm-0"].reason is Reason.PLAYBOOK_FAILED
    assert "GuestUnreachable: it is broken" in record.failures["web-vm-0"].message


FULL = "failed to transfer file to /a /b: dd: /b: No space left on device"
EXCEPTION = {"msg": "MODULE FAILURE", "module_stderr": "OSError: [Errno 28] No space left on device: b'/b'"}


@pytest.mark.parametrize(
    ("action", "result", "machine", "says"),
    [
        ("ansible.builtin.copy", {"msg": FULL}, "web-vm-0", "task 'Do': failed to transfer file"),
        ("ansible.builtin.copy", {"msg": FULL}, "web-vm-0", "host rack-1, virtual machine web-vm-0: "),
        ("ansible.builtin.template", EXCEPTION, "", "make room there (df -h"),
        ("unarchive", {"msg": "items", "results": [{"failed": True, "msg": "Disc quota exceeded"}]}, "", "make room"),
        ("ansible.builtin.copy", {"msg": "Permission denied"}, "", None),
        ("ansible.builtin.fail", {"msg": f"the monitor's log ends: {FULL}"}, "", None),
        ("ansible.builtin.command", command(FULL), "", None),
        ("ansible.builtin.template", {"msg": "failed to validate", "stderr": FULL}, "", None),
        ("", {"msg": FULL}, "", None),
    ],
)
def test_a_module_that_finds_no_room_says_storage_full(
    action: str, result: dict[str, Any], machine: str, says: str | None
) -> None:
    """Not what others say: a member's log would have it that its image is not to blame."""
    record = Record(HOST, 1, {"web-0": machine} if machine else {})
    record.observe(event("playbook_on_task_start", task="Do"))
    record.observe(event("runner_on_failed", host="web-0", res=result, task_action=action))
    found = record.failures["web-0"]
    assert found.reason is (Reason.PLAYBOOK_FAILED if says is None else Reason.STORAGE_FULL)
    assert (says or "rack-1") in found.message


@pytest.mark.parametrize("machine", ["web-vm-0", ""])
def test_a_full_disk_makes_nothing_unreachable(machine: str) -> None:
    """Ansible says so of a host on which it can make no temporary directory: the machine would be replaced for it."""
    record = Record(HOST, 1, {"web-0": machine} if machine else {})
    said = {"msg": "Task failed: mkdir: cannot create directory '/root/.ansible/tmp/x': No space left on device"}
    record.observe(event("runner_on_unreachable", host="web-0", res=said))
    found = record.failures["web-0"]
    assert (found.reason, machine in found.message) == (Reason.STORAGE_FULL, True)


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


@pytest.mark.parametrize(
    ("said", "reason", "says"),
    [
        (
            "root@10.1.0.1: Permission denied (publickey).",
            Reason.AUTHENTICATION_FAILED,
            "the key with which it was made",
        ),
        (
            "channel 0: open failed: administratively prohibited: open failed; stdio forwarding failed",
            Reason.HOST_UNREACHABLE,
            "host rack-1 does not forward connections to virtual machine web-vm-0: let its sshd do so for user shai",
        ),
        ("Host key verification failed.", Reason.HOST_KEY_MISMATCH, "another machine has this address"),
        ("channel 0: open failed: connect failed: timed out", Reason.GUEST_UNREACHABLE, "console.log"),
    ],
)
def test_a_machine_that_is_not_let_into_is_not_broken(said: str, reason: Reason, says: str) -> None:
    record = Record(HOST, 3, {"web-vm-0": "web-vm-0", "web-0": "web-vm-0"})
    record.observe(event("runner_on_unreachable", host="web-0", res={"unreachable": True, "msg": said}))
    failure = record.failures["web-0"]
    assert failure.reason is reason
    assert says in failure.message
    assert "virtual machine web-vm-0" in failure.message


def test_nothing_happened_is_explained() -> None:
    record, _ = observed(event("playbook_on_stats", processed={}))
    assert "no hosts matched" in record.explain().message
    record, _ = observed({"event": "verbose", "stdout": "ERROR! the playbook could not be found"})
    assert "could not be found" in record.explain().message
