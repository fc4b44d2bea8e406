# SPDX-License-Identifier: BSD-2-Clause
"""Questions to the product, many in one process."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from monitor.tests.diaries import SHAI
from monitor.tests.differential.grammar import THIS, Fact, Session
from monitor.tests.differential.syntax import Policy, Time, Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Question:
    policy: Policy
    operation: str
    facts: tuple[Fact, ...]
    session: Session


def answers(directory: Path, questions: Sequence[Question]) -> list[bool]:
    """Ask ``shai policy test`` whether each is allowed. All expect "allowed": the outcomes say what was got."""
    policies = {question.policy.name: question.policy for question in questions}
    (directory / "random.pol").write_text("".join(map(str, policies.values())))
    tests = [_entry(number, question) for number, question in enumerate(questions)]
    (directory / "random_test.yaml").write_text(json.dumps({"tests": tests}))
    done = subprocess.run(
        [SHAI, "policy", "test", "--output", "json", directory / "random_test.yaml"],
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
    """What ``compare`` says that only the first policy allows."""

    rule: str
    facts: tuple[Fact, ...]
    session: Session


@dataclass(frozen=True)
class Compared:
    implied: dict[str, bool]
    """By rule, read and update: whether each clause of the first is implied."""
    cases: tuple[Case, ...]


def compared(directory: Path, first: Policy, second: Policy) -> Compared:
    """Ask ``shai policy compare``."""
    files = []
    for policy in (first, second):
        files.append(directory / f"{policy.name}.pol")
        files[-1].write_text(str(policy))
    done = subprocess.run(
        [SHAI, "policy", "compare", "--output", "json", "--conduit", THIS, *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in {0, 3}, f"{done.stderr}\n{first}{second}"
    result = json.loads(done.stdout)
    implied = dict.fromkeys(("read", "update"), True)
    cases = []
    for clause in result["clauses"]:
        assert "onlyIf" not in clause, clause  # an answer for all facts rests on none
        implied[clause["rule"]] &= clause["implied"]
        if "case" in clause:
            cases.append(_case(clause["rule"], clause["case"]))
    return Compared(implied, tuple(cases))


def _case(rule: str, case: dict[str, Any]) -> Case:
    session = Session(
        principal=case.get("principal", ""),
        region=case.get("region", ""),
        time=_time(case["time"]) if "time" in case else None,
        kind=case.get("kind", ""),
    )
    return Case(rule, tuple(map(_fact, case.get("facts", []))), session)


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
