# SPDX-License-Identifier: BSD-2-Clause
"""Verifies that policies hold on a running member.

python -m loadgen verify --member member.json --logs DIR

Each user's searches for documents run on the member itself. The search engine is broken in twins beside it.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.datasets import population
from loadgen.stacks import desk, interests, manifests, processes, twins
from loadgen.stacks import member as members
from loadgen.stacks.launcher import BROKEN, BROKEN_BASELINE
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import Supervisor
from loadgen.verifying import checks, faulty

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from loadgen.datasets.population import Population
    from loadgen.stacks.launcher import Launcher
    from loadgen.stacks.member import Member
    from loadgen.stacks.stack import Stack
    from loadgen.verifying.checks import Document


def verify(member: Member, logs: Path, supervisor: Supervisor, tell: Callable[[str], None]) -> dict[str, Any]:
    """Search as alice and as bob, and try to leak bob's document; EnforcementError when a policy does not hold."""
    documents = manifests.read(member.manifests)
    people = population.load(member.data)
    stack = member.attach(documents)
    document = checks.private_document(member.data, "bob")
    cores = frozenset(processes.split_cores()[0])
    tell("searching as alice and as bob")
    searches = checks.compare(stack.front_end, people["alice"], people["bob"], document)
    with (
        twins.room(member) as place,
        twins.launcher(
            member,
            documents,
            place=place,
            logs=logs,
            cores=cores,
            supervisor=supervisor,
        ) as launcher,
    ):
        leak = _attempt(launcher, stack, people, document, tell)
        subject = faulty.Subject(member, documents, people, stack.front_end)
        support = faulty.accesses(launcher, subject, tell) if desk.TASK in stack.beside else None
    return {"searches": searches, "leak": leak, "support": support}


def _attempt(
    launcher: Launcher, stack: Stack, people: Population, document: Document, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Search for bob's document as alice, with an engine that ignores attributes, without enforcement and with it.

    Under enforcement, alice then has topics made by a task that is broken, too.
    """
    attempts: dict[str, dict[str, Any]] = {}
    record: dict[str, Any] = {}
    topics, host = "", stack.address[0]
    enforcing = faulty.BROKEN_TOPICS if interests.TASK in stack.beside else BROKEN
    for variant in (BROKEN_BASELINE, enforcing):
        tell(f"mode {variant.mode}, with a search engine that ignores who may read what")
        broken = launcher.launch(variant, (host, free_port(host)))
        broken.analyze()
        broken.serve()
        attempts[variant.mode] = checks.leak_attempt(broken.front_end, people["alice"], "bob", document)
        if variant is enforcing:
            checks.judge(attempts["baseline"], attempts["shai"], document)
            record = checks.await_record(partial(broken.monitor.audit, ["--denied"]), document)
            if interests.TASK in broken.beside:
                topics = faulty.topics(broken.beside[interests.TASK], people["alice"])
        launcher.end(variant)
    return {**attempts, "document": document.conduit, "audit": record, "topics": topics}


def findings(found: dict[str, Any]) -> list[str]:
    """Return the findings of `verify` as lines for people."""
    searches, leak = found["searches"], found["leak"]
    lines = [f"Searching “{searches['query']}”, the title of bob's private document {searches['document']}:"]
    for name in ("alice", "bob"):
        private = sum(result["owner"] == "bob" and result["visibility"] == "private" for result in searches[name])
        lines.append(f"  as {name}: {_results(len(searches[name]))}, {private} of them private to bob")
    return [
        *lines,
        "The same search as alice, with a search engine broken so that it ignores who may read what:",
        "  mode baseline: " + ("bob's document leaked to alice" if leak["baseline"]["leaked"] else "no leak"),
        f"  mode shai: stopped, {_results(leak['shai']['withheld'])} withheld",
        "  audit log: {operation} of {conduit} by {instance} refused, by policy {policy}".format_map(leak["audit"]),
        *(["Alice's search as a topic of hers, for advertisements: refused"] if leak["topics"] else []),
        *(faulty.lines(found["support"]) if found["support"] else []),
    ]


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} results"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--member", type=Path, required=True, help="JSON: where the member is (loadgen.stacks.member)")
    parser.add_argument("--logs", type=Path, required=True, help="directory for the logs of what is started")
    parser.add_argument("--json", type=Path, help="file for what was found")


def run(options: Namespace) -> None:
    """Verify and print the findings; EnforcementError when a policy does not hold."""
    member = members.read(options.member)
    with Supervisor() as supervisor:
        found = verify(member, options.logs.resolve(), supervisor, partial(print, flush=True))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    print("\n".join(findings(found)))
