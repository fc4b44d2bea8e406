# SPDX-License-Identifier: BSD-2-Clause
"""Policies as data: terms, literals, clauses, and how they are written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Variable:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Time:
    """Seconds since 1970, UTC."""

    seconds: int

    def __str__(self) -> str:
        return datetime.fromtimestamp(self.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class This:
    def __str__(self) -> str:
        return "this"


@dataclass(frozen=True)
class Anything:
    def __str__(self) -> str:
        return "_"


Value = str | int | Time
Term = Value | Variable | This | Anything


def written(term: Term) -> str:
    return json.dumps(term) if isinstance(term, str) else str(term)


@dataclass(frozen=True)
class Literal:
    """A predicate of the session, the conduit or the values of its arguments."""

    predicate: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        if self.predicate == "cKindIs" or not self.arguments:
            return f"{self.predicate}({', '.join(str(a) for a in self.arguments)})"
        if self.predicate == "vType":
            return f"vType({written(self.arguments[0])}, {self.arguments[1]})"
        return f"{self.predicate}({', '.join(map(written, self.arguments))})"


@dataclass(frozen=True)
class Says:
    conduit: Term
    relation: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{written(self.conduit)} says {self.relation}({', '.join(map(written, self.arguments))})"


@dataclass(frozen=True)
class Each:
    of: Says
    condition: tuple[Body, ...]

    def __str__(self) -> str:
        return f"each in {self.of} {{ {', '.join(map(str, self.condition))} }}"


Body = Literal | Says | Each


def variables(body: Body) -> Iterator[str]:
    """Every mention of a variable."""
    if isinstance(body, Each):
        yield from variables(body.of)
        for one in body.condition:
            yield from variables(one)
        return
    terms = body.arguments if isinstance(body, Literal) else (body.conduit, *body.arguments)
    for term in terms:
        if isinstance(term, Variable):
            yield term.name


def used(clause: tuple[Body, ...]) -> tuple[Body, ...]:
    """Write ``_`` for each variable that the clause mentions once, as the language asks for."""
    counts = Counter(name for body in clause for name in variables(body))

    def term(of: Term) -> Term:
        return Anything() if isinstance(of, Variable) and counts[of.name] == 1 else of

    def rewrite(body: Body) -> Body:
        if isinstance(body, Each):
            of = rewrite(body.of)
            assert isinstance(of, Says)
            return Each(of, tuple(map(rewrite, body.condition)))
        return replace(body, arguments=tuple(map(term, body.arguments)))

    return tuple(map(rewrite, clause))


@dataclass(frozen=True)
class Policy:
    name: str
    read: tuple[tuple[Body, ...], ...]
    update: tuple[tuple[Body, ...], ...]

    def __str__(self) -> str:
        lines = [f"policy {self.name} {{"]
        for head, clauses in (("read", self.read), ("update", self.update)):
            lines += [f"  {head} :- {', '.join(map(str, clause)) or 'true'}." for clause in clauses]
        return "\n".join([*lines, "}", ""])
