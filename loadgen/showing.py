# SPDX-License-Identifier: BSD-2-Clause
"""Shows on a member that is up that policies hold.

python -m loadgen.showing --member member.json --logs DIR

Who finds what is asked of the member itself; the search engine is broken in twins beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen import beside, enforcement, manifests, population
from loadgen import member as members
from loadgen.failures import FAILURES
from loadgen.stack import BROKEN, BROKEN_BASELINE
from loadgen.supervisor import Supervisor
from loadgen.workspace import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.enforcement import Document
    from loadgen.member import Member
    from loadgen.population import Population
    from loadgen.stack import Launcher

_INTERRUPTED = 130


def show(member: Member, logs: Path, supervisor: Supervisor, tell: Callable[[str], None]) -> dict[str, Any]:
    """Search as alice and as bob, and try to leak bob's document; EnforcementError when a policy does not hold."""
    documents = manifests.read(member.manifests)
    people = population.load(member.data)
    stack = member.attach(documents)
    document = enforcement.private_document(member.data, "bob")
    tell("searching as alice and as bob")
    searches = enforcement.compare(stack.address, people["alice"], people["bob"], document)
    with (
        beside.room(member) as place,
        beside.launcher(
            member, documents, place=place, logs=logs, cores=frozenset(cores()[0]), supervisor=supervisor
        ) as launcher,
    ):
        leak = _attempt(launcher, stack.address[0], people, document, tell)
    return {"searches": searches, "leak": leak}


def _attempt(
    launcher: Launcher, host: str, people: Population, document: Document, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Search bob's document as alice with an engine that ignores attributes, without enforcement and with it."""
    attempts: dict[str, dict[str, Any]] = {}
    record: dict[str, Any] = {}
    for variant in (BROKEN_BASELINE, BROKEN):
        tell(f"mode {variant.mode}, with a search engine that ignores who may read what")
        broken = launcher.launch(variant, beside.free_address(host))
        broken.analyse()
        broken.serve()
        attempts[variant.mode] = enforcement.leak_attempt(broken.address, people["alice"], "bob", document)
        if variant is BROKEN:
            enforcement.judge(attempts["baseline"], attempts["shai"], document)
            record = enforcement.await_record(partial(broken.monitor.audit, ["--denied"]), document)
        launcher.end(variant)
    return {**attempts, "document": document.conduit, "audit": record}


def findings(found: dict[str, Any]) -> list[str]:
    """Write what `show` found in lines for people."""
    searches, leak = found["searches"], found["leak"]
    lines = [f"Search for “{searches['query']}”, the title of bob's private {searches['document']}:"]
    for name in ("alice", "bob"):
        private = sum(result["owner"] == "bob" and result["visibility"] == "private" for result in searches[name])
        lines.append(f"  as {name}: {len(searches[name])} results, {private} of them private to bob")
    return [
        *lines,
        "The same search as alice, with an engine broken so that it returns everything:",
        f"  baseline: bob's document {'LEAKED' if leak['baseline']['leaked'] else 'did not leak'}",
        f"  shai:     stopped, {leak['shai']['withheld']} results withheld",
        "  audit:    {operation} {conduit} by {instance} refused: {reason}".format_map(leak["audit"]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Show it; 0 when every policy holds, 1 when one does not or something failed, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--member", type=Path, required=True, help="JSON: where the member is (loadgen.member)")
    parser.add_argument("--logs", type=Path, required=True, help="directory for the logs of what is started")
    parser.add_argument("--json", type=Path, help="file for what was found")
    options = parser.parse_args(arguments)
    try:
        member = members.read(options.member)
        with Supervisor() as supervisor:
            found = show(member, options.logs.resolve(), supervisor, partial(print, flush=True))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except FAILURES as error:
        print(f"showing: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    print("\n".join(findings(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
