# SPDX-License-Identifier: BSD-2-Clause
"""Pairs of clauses that differ in one literal: whether one implies the other hangs on this difference alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from monitor.tests.differential.addresses import ADDRESSES, PREFIXES
from monitor.tests.differential.grammar import (
    COMPARISONS,
    KINDS,
    LISTS,
    NUMBERS,
    PRINCIPALS,
    RELATIONS,
    TEXTS,
    TIMES,
    ClauseMaker,
    constant,
)
from monitor.tests.differential.syntax import Anything, Each, Literal, Says, Time, Variable, used, variables

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from monitor.tests.differential.syntax import Body, Term

    Clause = tuple[Body, ...]


@dataclass(frozen=True)
class Pair:
    """Does the second clause of the rule allow whatever the first allows?"""

    rule: str
    first: Clause
    second: Clause

    def __str__(self) -> str:
        return "\n".join(f"{self.rule} :- {', '.join(map(str, clause))}." for clause in (self.first, self.second))


def pair(draw: random.Random) -> Pair:
    """Both clauses give values to some variables; then comes the literal in which they differ."""
    rule = draw.choice(("read", "update"))
    maker = ClauseMaker(draw, update=rule == "update", symbolic=True)
    before = [draw.choice((maker.given, maker.says, maker.says, maker.says))() for _ in range(draw.choice((1, 1, 2)))]
    inside = list(maker.bound)
    kinds: list[Callable[[], Body]] = [maker.compare] * 8 + [maker.each] * 5 + [maker.says] * 2
    if inside and draw.random() < 0.2:
        bodies = [[*before, bound] for bound in _bounds(draw, inside[-1])]
    elif inside and draw.random() < 0.1:
        bodies = [before, [*before, *_again(draw, draw.choice(before), maker)]]
    else:
        focus = draw.choice([*kinds, maker.given, maker.vtype, maker.prefix, maker.compute, maker.concat])()
        bodies = [[*before, focus], [*before, *_changed(draw, focus, inside)]]
    for body in bodies:
        draw.shuffle(body)
    draw.shuffle(bodies)
    return Pair(rule, used(tuple(bodies[0])), used(tuple(bodies[1])))


def _again(draw: random.Random, body: Body, maker: ClauseMaker) -> list[Body]:
    """The same once more, with variables of its own: a session has one region, a list many tuples."""
    assert isinstance(body, Literal | Says)
    own = {name: maker.fresh() for name in variables(body)}
    if not own:
        return [body]
    copied = replace(body, arguments=tuple(own[a.name] if isinstance(a, Variable) else a for a in body.arguments))
    name = draw.choice(sorted(own))
    return [copied, Literal(draw.choice(COMPARISONS), (Variable(name), own[name]))]


def _bounds(draw: random.Random, of: Variable) -> list[Literal]:
    """Two bounds of a variable: relations and constants differ at once. neq(X, 1) does not imply lt(X, 2)."""
    alike: tuple[Term, ...] = draw.choice((NUMBERS[:4], TIMES, PRINCIPALS[:2]))
    bounds = []
    for other in draw.sample(alike, 2):
        sides = [of, other]
        draw.shuffle(sides)
        bounds.append(Literal(draw.choice(COMPARISONS), tuple(sides)))
    return bounds


def _changed(draw: random.Random, body: Body, bound: list[Variable]) -> list[Body]:
    """Another literal in its place; now and then none."""
    if draw.random() < 0.1:
        return []
    if isinstance(body, Each):
        return [_each(draw, body, bound)]
    if isinstance(body, Says):
        return [_says(draw, body, bound)]
    return [_literal(draw, body, bound)]


def _each(draw: random.Random, body: Each, bound: list[Variable]) -> Each:
    if draw.random() < 0.4:
        needed = {name for one in body.condition for name in variables(one)} - {one.name for one in bound}
        return replace(body, of=_says(draw, body.of, bound, frozenset(needed)))
    condition = list(body.condition)
    at = draw.randrange(len(condition))
    if len(condition) > 1 and draw.random() < 0.4:
        del condition[-1]  # no other needs what the last one gives a value to
    elif isinstance(one := condition[at], Literal):
        condition[at] = _literal(draw, one, bound)
    return replace(body, condition=tuple(condition))


def _says(draw: random.Random, body: Says, bound: list[Variable], needed: frozenset[str] = frozenset()) -> Says:
    """Another conduit or relation, or another argument where it does not give a value to what is ``needed``."""
    others = [one for one, arity in RELATIONS.items() if arity == len(body.arguments) and one != body.relation]
    choice = draw.random()
    if choice < 0.2:
        return replace(body, conduit=draw.choice(LISTS))
    if choice < 0.4 and others:
        return replace(body, relation=draw.choice(others))
    free = [i for i, a in enumerate(body.arguments) if not (isinstance(a, Variable) and a.name in needed)]
    if not free:
        return body
    arguments = list(body.arguments)
    arguments[draw.choice(free)] = draw.choice((Anything(), constant(draw), *bound))
    return replace(body, arguments=tuple(arguments))


def _literal(draw: random.Random, body: Literal, bound: list[Variable]) -> Literal:
    name, arguments = body.predicate, list(body.arguments)
    binds = name == "eq" and any(isinstance(term, Variable) and term not in bound for term in arguments)
    if name in COMPARISONS and not binds and draw.random() < 0.6:
        # With the bound or without it is where mistakes are: as often as all others together.
        near = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}.get(name)
        others = [one for one in COMPARISONS if one != name]
        return Literal(near if near and draw.random() < 0.5 else draw.choice(others), body.arguments)
    at = [i for i, term in enumerate(arguments) if not isinstance(term, Variable | Anything)]
    if name in COMPARISONS and not binds and (not at or draw.random() < 0.2):
        return Literal(name, (arguments[1], arguments[0]))
    if at:
        changed = draw.choice(at)
        arguments[changed] = _other(draw, name, arguments[changed])
    return Literal(name, tuple(arguments))


def _other(draw: random.Random, name: str, term: Term) -> Term:
    """Another constant of the same type."""
    alike: tuple[Term, ...] = TEXTS
    if name == "cKindIs":
        alike = KINDS
    elif name == "vType":
        alike = ("string", "integer", "time")
    elif name in {"sIpIs", "ipPrefix"}:
        alike = ADDRESSES if term in ADDRESSES else PREFIXES
    elif isinstance(term, Time):
        alike = TIMES
    elif isinstance(term, int):
        alike = NUMBERS[:4]
    return draw.choice([one for one in alike if one != term])
