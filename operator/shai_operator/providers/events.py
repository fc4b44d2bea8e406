# SPDX-License-Identifier: BSD-2-Clause
"""Reads progress and failures of hosts from ansible-runner's events. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shai_operator.providers import said
from shai_operator.providers.interface import Failure, Progress, Reason
from shai_operator.reconcile.texts import cleaned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.providers.interface import Host

_KEY_MISMATCH = ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed")
_FROM_ROLES = (
    Reason.NO_VIRTUALIZATION, Reason.STORAGE_FULL, Reason.IMAGE_FETCH_FAILED, Reason.CHECKSUM_MISMATCH,
    Reason.ARCHITECTURE_MISMATCH, Reason.GUEST_UNREACHABLE, Reason.BRIDGE_CONFLICT, Reason.JAIL_STUCK,
    Reason.CLOCK_SKEW, Reason.ENFORCEMENT_INSUFFICIENT,
)  # fmt: skip
_NAMED = re.compile(rf"({'|'.join(_FROM_ROLES)}): ")
"""How a role names the reason of a failure: at the start of a task's message, or as the last words of one of its own
scripts. What a message quotes further on, such as a member's log, names none."""
_MODULES_THAT_RUN = ("command", "script", "shell")
"""Those by which a role runs its scripts. What programs print that other modules run is not the role's."""
_MODULES_THAT_WRITE = ("blockinfile", "copy", "file", "lineinfile", "template", "unarchive")
"""Their messages are their own: no role can have put a member's log into them."""
_FULL = re.compile(r"no space left on device|dis[ck] quota exceeded", re.IGNORECASE)
_MODULES_THAT_REFUSE = ("assert", "fail")
"""With them a role says itself what to do."""
_ROLES_ON_HOST = ("pool_vm",)
"""The roles that do for a virtual machine what is done on its host: it is not the machine that they cannot reach."""
_REFUSED = ("Permission denied (", "Too many authentication failures")
_NOT_FORWARDED = "administratively prohibited"
"""What ssh says where a host's sshd forwards no connections."""


@dataclass
class Record:
    """The events of one run on ``host`` so far; host names are those of the inventory."""

    host: Host
    total: int
    guests: Mapping[str, str] = field(default_factory=dict)
    """The virtual machines that entries of the inventory are, or are in."""
    play: str = ""
    task: str = ""
    done: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    reached: set[str] = field(default_factory=set)
    statistics: dict[str, Any] = field(default_factory=dict)
    """The values that the playbook reported with set_stats."""
    _said: list[str] = field(default_factory=list)

    def observe(self, event: Mapping[str, Any]) -> Progress | None:
        """Process one event; return the progress when it has changed."""
        data = event.get("event_data") or {}
        match event.get("event"):
            case "playbook_on_play_start":
                self.play = str(data.get("name", ""))
            case "playbook_on_task_start" | "playbook_on_handler_task_start":
                self.task = str(data.get("task", ""))
                self.done = min(self.done + 1, self.total)
                return Progress(self.host.name, self.play, self.task, self.done, self.total)
            case "runner_on_failed" if not data.get("ignore_errors"):
                self.failures[str(data["host"])] = _fit(self._failed(data))
            case "runner_on_unreachable":
                self.failures[str(data["host"])] = _fit(self._unreachable(data))
            case "playbook_on_stats":
                self._summarise(data)
            case _ if event.get("stdout"):
                self._said = [*self._said[-20:], str(event["stdout"])]
        return None

    def explain(self) -> Failure:
        """Say why a run failed without a failed host: there was no host, or the playbook cannot be read."""
        text = " ".join(" ".join(self._said).split())
        if not self.reached and not text:
            text = "no hosts matched its plays"
        return _fit(
            Failure(
                Reason.PLAYBOOK_FAILED,
                f"the playbook did not run: {said.shortened(text)}; this is an error of the operator",
            )
        )

    def _failed(self, data: Mapping[str, Any]) -> Failure:
        result = data.get("res") or {}
        reason, text = _named(result, _module(data))
        if reason is not None:
            return Failure(reason, f"{self._where(data)}: {text}")
        if _finds_no_room(data):
            return self._full(data, said.text(result))
        remedy = "" if _module(data) in _MODULES_THAT_REFUSE else f"; {self._remedy(data)}"
        return Failure(Reason.PLAYBOOK_FAILED, f"{self._where(data)}: task {self.task!r}: {said.text(result)}{remedy}")

    def _full(self, data: Mapping[str, Any], text: str) -> Failure:
        message = f"{self._where(data)}: task {self.task!r}: {text}; make room there (df -h shows where there is none)"
        return Failure(Reason.STORAGE_FULL, message)

    def _remedy(self, data: Mapping[str, Any]) -> str:
        """Say what to do where no role does, about a program or a module that has failed."""
        place = "in the virtual machine" if self._machine(data) else "on the host"
        if said.delegated(data.get("res") or {}):
            place = "on the operator's machine, where this task runs"
        return f"correct this {place}; the next run, which the operator starts itself, goes on from there"

    def _where(self, data: Mapping[str, Any]) -> str:
        machine = self._machine(data)
        return f"host {self.host.name}" + (f", virtual machine {machine}" if machine else "")

    def _unreachable(self, data: Mapping[str, Any]) -> Failure:
        text = said.text(data.get("res") or {})
        machine = self._machine(data)
        if _FULL.search(text):  # Ansible takes a host on which it can make no temporary directory for unreachable
            return self._full(data, text)
        return _guest_unreachable(self.host, machine, text) if machine else unreachable(self.host, text)

    def _machine(self, data: Mapping[str, Any]) -> str | None:
        """Return the virtual machine in which something failed; None when it was on the host."""
        on_host = str(data.get("role", "")).rpartition(".")[2] in _ROLES_ON_HOST
        return None if on_host else self.guests.get(str(data["host"]))

    def _summarise(self, data: Mapping[str, Any]) -> None:
        """Use the final statistics: a failure that a rescue section handled is no failure."""
        lasting = {*(data.get("failures") or {}), *(data.get("dark") or {})}
        self.failures = {host: failure for host, failure in self.failures.items() if host in lasting}
        self.changed = set(data.get("changed") or {})
        self.reached = set(data.get("processed") or {})
        self.statistics = dict(data.get("artifact_data") or {})


def unreachable(host: Host, text: str) -> Failure:
    """Say why a host cannot be reached, from ssh's output, and what to do."""
    login = host.login
    where = f"host {host.name} ({host.address}" + (f" port {login.port})" if login else ")")
    if any(sign in text for sign in _KEY_MISMATCH):
        return Failure(
            Reason.HOST_KEY_MISMATCH,
            f"{where} shows another host key than its hostKey: find out whether it is the right machine; "
            f"if it is, put its key there (ssh-keyscan prints it)",
        )
    if any(sign in text for sign in _REFUSED):
        user = login.user if login else ""
        return Failure(
            Reason.AUTHENTICATION_FAILED,
            f"{where} does not let user {user} in with the key of privateKeySecret: put the key's public half into "
            f"~{user}/.ssh/authorized_keys there, or the right key into the Secret",
        )
    return Failure(
        Reason.HOST_UNREACHABLE,
        f"{where} cannot be reached: {text}; check that it runs, and its address and port",
    )


def _guest_unreachable(host: Host, machine: str, text: str) -> Failure:
    """Say why a virtual machine cannot be reached. Only GuestUnreachable is for the machine itself to blame."""
    where = f"virtual machine {machine} on host {host.name}"
    if _NOT_FORWARDED in text:
        user = host.login.user if host.login else ""
        return Failure(
            Reason.HOST_UNREACHABLE,
            f"host {host.name} does not forward connections to virtual machine {machine}: let its sshd do so for user "
            f"{user} (AllowTcpForwarding, PermitOpen, DisableForwarding in sshd_config, restrict in authorized_keys)",
        )
    if any(sign in text for sign in _KEY_MISMATCH):
        return Failure(
            Reason.HOST_KEY_MISMATCH,
            f"what answers at the address of {where} shows another host key than the one that its host has of it: find "
            f"out whether another machine has this address; what was changed in the virtual machine, undo",
        )
    if any(sign in text for sign in _REFUSED):
        return Failure(
            Reason.AUTHENTICATION_FAILED,
            f"{where} does not let root in with the key of privateKeySecret: put the key with which it was made into "
            f"the Secret; a new key has to be in virtualMachine.authorizedKeys before it takes the old one's place",
        )
    return Failure(
        Reason.GUEST_UNREACHABLE,
        f"{where} cannot be reached by SSH through its host: {text}; "
        f"look at its console.log on the host, and whether network.gateway and network.uplink are right",
    )


def _named(result: Mapping[str, Any], module: str) -> tuple[Reason | None, str]:
    """Return the reason that a role names in a result, and what follows it; None and nothing when it names none.

    A script ends when it has named a reason. What programs that it ran have printed before, such as those of a jail
    that it stops, names none.
    """
    item = said.failed_item(result)
    if item is not None:
        return _named(item, module)
    words = [str(result.get("msg") or "").strip()]
    if module in _MODULES_THAT_RUN:
        lines = str(result.get("stderr") or "").splitlines()
        words += ["\n".join(lines[number:]) for number in reversed(range(len(lines)))]
    for text in words:
        found = _NAMED.match(text)
        if found is not None:
            rest = " ".join(text[found.end() :].split())
            return Reason(found[1]), rest if len(rest) <= said.LONGEST else rest[: said.LONGEST] + " …"
    return None, ""


def _module(data: Mapping[str, Any]) -> str:
    """Return the name of the module that a task runs, without its collection."""
    return str(data.get("task_action", "")).rpartition(".")[2]


def _finds_no_room(data: Mapping[str, Any]) -> bool:
    """Whether a module that writes has failed for want of room. What a program printed (`validate`) does not count."""
    result = data.get("res") or {}
    result = said.failed_item(result) or result
    text = f"{result.get('msg', '')} {result.get('module_stderr', '')}"
    return _module(data) in _MODULES_THAT_WRITE and bool(_FULL.search(text))


def _fit(failure: Failure) -> Failure:
    """Return a failure whose message a status can have, whatever bytes a host has printed."""
    return replace(failure, message=cleaned(failure.message))
