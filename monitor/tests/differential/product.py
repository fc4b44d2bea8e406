# SPDX-License-Identifier: BSD-2-Clause
"""Questions to the product, many in one process."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from monitor.tests.differential.grammar import THIS, Fact, Session
from monitor.tests.differential.syntax import Body, Literal, Policy, Time, Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from monitor.tests.differential.pairs import Pair


@dataclass(frozen=True)
class Question:
    policy: Policy
    operation: str
    facts: tuple[Fact, ...]
    session: Session


def answers(shai: Path, directory: Path, questions: Sequence[Question]) -> list[bool]:
    """Ask ``shai policy test`` whether each is allowed. All expect "allowed": the outcomes say what was got."""
    policies = {question.policy.name: question.policy for question in questions}
    (directory / "random.pol").write_text("".join(map(str, policies.values())))
    tests = [_entry(number, question) for number, question in enumerate(questions)]
    (directory / "random_test.yaml").write_text(json.dumps({"tests": tests}))
    done = subprocess.run(
        [shai, "policy", "test", "--output", "json", directory / "random_test.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    result = json.loads(done.stdout)
    assert not result.get("findings"), result["findings"]
    got = {outcome["name"]: outcome["got"] for outcome in result["tests"]}
    assert set(got.values()) <= {"allowed", "denied"}, got
    return [got[str(number)] == "allowed" for number in range(len(questions))]


def _entry(number: int, question: Question) -> dict[str, Any]:
    session = question.session
    entry: dict[str, Any] = {
        "name": str(number),
        "policy": question.policy.name,
        "operation": question.operation,
        "principal": session.principal,
        "region": session.region,
        "address": session.address,
        "conduit": {"name": THIS, "kind": session.kind},
        "facts": [
            {"conduit": f.conduit, "says": f.relation, "tuples": [[_json(a) for a in f.arguments]]}
            for f in question.facts
        ],
        "expect": "allowed",
    }
    if session.time:
        entry["time"] = str(session.time)
    return entry


def _json(value: Value) -> Any:
    return {"time": str(value)} if isinstance(value, Time) else value


@dataclass(frozen=True)
class Case:
    """What ``compare`` says that only the first of two rules allows."""

    facts: tuple[Fact, ...]
    session: Session


@dataclass(frozen=True)
class Compared:
    implied: bool
    case: Case | None


def compared(shai: Path, directory: Path, pairs: Sequence[Pair]) -> list[Compared]:
    """Ask ``shai policy compare`` of all pairs at once: of each whether the second clause allows what the first does.

    A tag in both clauses, the number of the conduit, keeps the pairs apart.
    """
    files = []
    for name, clauses in (("first", [p.first for p in pairs]), ("second", [p.second for p in pairs])):
        rules: dict[str, list[tuple[Body, ...]]] = {"read": [], "update": []}
        for number, (pair, clause) in enumerate(zip(pairs, clauses, strict=True), start=1):
            rules[pair.rule].append((Literal(TAG, (number,)), *clause))
        files.append(directory / f"{name}.pol")
        files[-1].write_text(str(Policy(name, tuple(rules["read"]), tuple(rules["update"]))))
    done = subprocess.run(
        [shai, "policy", "compare", "--output", "json", "--conduit", THIS, *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 3}, f"{done.stderr}\n{files[0].read_text()}{files[1].read_text()}"
    found: dict[int, Compared] = {}
    for clause in json.loads(done.stdout)["clauses"]:
        assert "onlyIf" not in clause, clause  # an answer for all facts rests on none
        case = _case(clause["case"]) if "case" in clause else None
        found[int(_TAGGED.findall(clause["clause"])[0])] = Compared(clause["implied"], case)
    never = Compared(implied=True, case=None)  # compare leaves out a clause that cannot hold
    return [found.get(number, never) for number in range(1, len(pairs) + 1)]


TAG = "cIdIs"
_TAGGED = re.compile(rf"{TAG}\((\d+)\)")


def _case(case: dict[str, Any]) -> Case:
    session = Session(
        principal=case.get("principal", ""),
        region=case.get("region", ""),
        address=case.get("address", ""),
        time=_time(case["time"]) if "time" in case else None,
        kind=case.get("kind", ""),
    )
    return Case(tuple(map(_fact, case.get("facts", []))), session)


_STRING = r'"(?:[^"\\]|\\.)*"'
_FACT = re.compile(rf"({_STRING}) says (\w+)\((.*)\)")
_VALUE = re.compile(rf"\s*({_STRING}|-?\d+(?![\d-])|[\dT:.Z-]+)(?:,|$)")


def _fact(text: str) -> Fact:
    parts = _FACT.fullmatch(text)
    assert parts, text
    return Fact(json.loads(parts[1]), parts[2], tuple(map(_value, _VALUE.findall(parts[3]))))


def _value(text: str) -> Value:
    if text.startswith('"'):
        return str(json.loads(text))
    return _time(text) if "T" in text else int(text)


def _time(text: str) -> Time:
    return Time(int(datetime.fromisoformat(text).timestamp()))
