# SPDX-License-Identifier: BSD-2-Clause
"""Copies of the collection in which tasks fail: every one that a playbook may run, or one before which a run ends."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from shai_operator.providers.process import COLLECTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROLES = ("linux_host", "linux_member", "certificate")
PLAYBOOKS = ("provision.yml", "read.yml", "remove.yml")
CANARY = "canary-in-a-line-of-a-program"
"""Stands where programs show their own lines, which may contain anything."""
CAUSE = "PermissionError: [Errno 13] Permission denied: '/srv/x'"
_LEADING = ("import_tasks", "include_tasks", "import_role", "meta")
_BREAKS = f"""
from ansible.plugins.action import ActionBase
TRACEBACK = '''Traceback (most recent call last):
  File "/srv/x.py", line 7, in log_in
    password = "{CANARY}"
{CAUSE}
'''
class ActionModule(ActionBase):
    _VALID_ARGS = frozenset({{"way"}})
    def run(self, tmp=None, task_vars=None):
        way = self._task.args["way"]
        if way == "program":
            said = chr(27) + "[31m" + TRACEBACK
            return {{"failed": True, "msg": "non-zero return code", "rc": 1, "stderr": said, "stdout": "{CANARY}"}}
        if way == "module":
            return {{"failed": True, "msg": "Task failed: Module failed: " + TRACEBACK}}
        return {{"failed": True, "msg": "Error executing command.", "cmd": ["/srv/x", "{CANARY}"], "rc": 13}}
"""
WAYS = ("program", "module", "command")


@dataclass(frozen=True)
class Place:
    """Where a task is: its file in the collection, and its name."""

    file: str
    task: str


def all_failing(place: Path) -> list[Place]:
    """Copy the collection; its playbook ``failing.yml`` has every task of the others, and each fails and is ignored.

    Returns the tasks in the order in which they fail. Conditions and loops are left out, because nothing is done that
    they are about; so are handlers' notifications, in whose place the handlers follow as tasks.
    """
    copied = _copy(place)
    found: list[Place] = []
    for role in ROLES:
        handlers = place / "roles" / role / "handlers/main.yml"
        files = sorted((place / "roles" / role / "tasks").glob("*.yml"))
        for file in [*files, *([handlers] if handlers.exists() else [])]:
            name = str(file.relative_to(place))
            failing = [_failing(task, len(found) + number) for number, task in enumerate(_leaves(_read(file)))]
            found += [Place(name, task["name"]) for task in failing]
            copied.append({"name": name, "hosts": "members", "gather_facts": False, "tasks": failing})
    for playbook in PLAYBOOKS:
        for play in _read(COLLECTION / "playbooks" / playbook):
            failing = [
                _failing(task, len(found) + number) for number, task in enumerate(_leaves(play.get("tasks", [])))
            ]
            found += [Place(f"playbooks/{playbook}", task["name"]) for task in failing]
            copied.append({"name": playbook, "hosts": "members", "gather_facts": False, "tasks": failing})
    (place / "playbooks/failing.yml").write_text(yaml.safe_dump([play for play in copied if play["tasks"]]))
    return found


def ending_before(place: Path, ends: Mapping[str, Place]) -> None:
    """Copy the collection; a member's run fails directly before the place that is given for it."""
    _copy(place)
    for member, end in ends.items():
        file = place / end.file
        tasks = _read(file)
        before = {**_failing({"name": end.task}, 0), "when": f"inventory_hostname == '{member}'"}
        del before["ignore_errors"]
        assert _put_before(tasks, end.task, before), end
        file.write_text(yaml.safe_dump(tasks))


def _copy(place: Path) -> list[dict[str, Any]]:
    shutil.copytree(COLLECTION, place)
    (place / "plugins/action").mkdir()
    (place / "plugins/action/breaks.py").write_text(_BREAKS)
    (place / "plugins/modules/breaks.py").write_text("")  # an action needs a module of its name
    return []


def _read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def _leaves(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks that do something, also those in blocks."""
    for task in tasks:
        inner = [task[part] for part in ("block", "rescue", "always") if part in task]
        for block in inner:
            yield from _leaves(block)
        if not inner and not any(name.rpartition(".")[2] in _LEADING for name in task):
            yield task


def _failing(task: Mapping[str, Any], number: int) -> dict[str, Any]:
    where = {"delegate_to": task["delegate_to"]} if "delegate_to" in task else {}
    action = {"shai.pools.breaks": {"way": WAYS[number % len(WAYS)]}}
    return {"name": task["name"], "ignore_errors": True, **where, **action}


def _put_before(tasks: list[dict[str, Any]], name: str, before: dict[str, Any]) -> bool:
    for number, task in enumerate(tasks):
        if task["name"] == name:
            tasks.insert(number, before)
            return True
        if any(_put_before(task[part], name, before) for part in ("block", "rescue", "always") if part in task):
            return True
    return False
