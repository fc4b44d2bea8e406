# SPDX-License-Identifier: BSD-2-Clause
"""The documented meaning of rules (docs/policies.md) as formulas of Z3.

A clause holds if there are values for its variables. Each variable is bound by a literal: the session, the clock, a
fact, arithmetic. So the literals are translated in an order in which each has what it needs, and the rest of the clause
is translated with the values that it gives: for a fact, once for each fact that there may be. No formula has a
quantifier, whichever side of a comparison it stands on, and Z3 decides it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import z3  # type: ignore[import-untyped]  # it has no stubs

from monitor.tests.differential import addresses
from monitor.tests.differential.syntax import Anything, Body, Each, Literal, Says, Term, This, Time, Value, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    Environment = dict[str, z3.ExprRef]
    Rest = Callable[[Environment], z3.BoolRef]

_DECLARED = z3.Datatype("Value")
_DECLARED.declare("text", ("characters", z3.StringSort()))
_DECLARED.declare("number", ("integer", z3.IntSort()))
_DECLARED.declare("moment", ("seconds", z3.IntSort()))  # of the Unix epoch
SORT = _DECLARED.create()

_LEAST, _MOST = -(2**63), 2**63 - 1
_FIRST, _LAST = _LEAST // 10**9 + 1, _MOST // 10**9  # what nanoseconds in 64 bits reach
_TYPES = {"string": SORT.is_text, "integer": SORT.is_number, "time": SORT.is_moment}
YES, NO = (z3.BoolVal(val=one) for one in (True, False))


def value(of: Value) -> z3.ExprRef:
    """A value as Z3 has it."""
    if isinstance(of, str):
        return SORT.text(z3.StringVal(of))
    return SORT.moment(of.seconds) if isinstance(of, Time) else SORT.number(of)


@dataclass(frozen=True)
class Slot:
    """A fact that may be there."""

    present: z3.BoolRef
    conduit: z3.ExprRef
    relation: str
    arguments: tuple[z3.ExprRef, ...]


@dataclass(frozen=True)
class Known:
    """Something that the session or the flow may have."""

    present: z3.BoolRef
    value: z3.ExprRef


@dataclass(frozen=True)
class World:
    """What a rule is evaluated for; ``given`` has the values that sKeyIs, timeIs and their like ask for."""

    this: z3.ExprRef
    given: dict[str, Known]
    slots: tuple[Slot, ...]

    def rule(self, clauses: tuple[tuple[Body, ...], ...]) -> z3.BoolRef:
        """Whether one of the clauses holds."""
        return z3.Or(NO, *(self.clause(clause, {}, lambda _: YES) for clause in clauses))

    def clause(self, body: tuple[Body, ...], environment: Environment, rest: Rest) -> z3.BoolRef:
        """Whether all literals hold, with ``rest``."""
        if not body:
            return rest(environment)
        last = all(isinstance(one, Each) for one in body)
        at = next((at for at, literal in enumerate(body) if self._ready(literal, environment, last=last)), None)
        assert at is not None, f"no literal gives a value to what these ask for: {', '.join(map(str, body))}"
        left = body[:at] + body[at + 1 :]
        return self._holds(body[at], environment, lambda found: self.clause(left, found, rest))

    @staticmethod
    def _known(term: Term, environment: Environment) -> bool:
        return not isinstance(term, Anything) and not (isinstance(term, Variable) and term.name not in environment)

    def _ready(self, literal: Body, environment: Environment, *, last: bool) -> bool:
        def known(term: Term) -> bool:
            return self._known(term, environment)

        if isinstance(literal, Says):
            return known(literal.conduit)
        if isinstance(literal, Each):
            return last  # it binds nothing; the variables that others bind choose among its tuples
        unknown = sum(not known(term) for term in literal.arguments)
        if literal.predicate in {"add", "sub", "concat", "eq"}:
            return unknown <= 1
        if literal.predicate in {"mul", "div", "rem"}:
            return all(known(term) for term in literal.arguments[1:])
        return literal.predicate in self.given or unknown == 0

    def _holds(self, literal: Body, environment: Environment, rest: Rest) -> z3.BoolRef:
        if isinstance(literal, Says):
            return z3.Or(NO, *(self._in(slot, literal, environment, rest) for slot in self._of(literal)))
        if isinstance(literal, Each):
            return z3.And(self._every(literal, environment), rest(environment))
        if literal.predicate in self.given:
            given = self.given[literal.predicate]
            return z3.And(given.present, self._unify(literal.arguments[0], given.value, environment, rest))
        return self._computed(literal, environment, rest)

    def _every(self, each: Each, environment: Environment) -> z3.BoolRef:
        def fails(found: Environment) -> z3.BoolRef:
            return z3.Not(self.clause(each.condition, found, lambda _: YES))

        named = self._value(each.of.conduit, environment)  # only a text that is not empty names a list
        failing = z3.Or(NO, *(self._in(slot, each.of, environment, fails) for slot in self._of(each.of)))
        return z3.And(SORT.is_text(named), SORT.characters(named) != "", z3.Not(failing))

    def _of(self, says: Says) -> list[Slot]:
        return [s for s in self.slots if s.relation == says.relation and len(s.arguments) == len(says.arguments)]

    def _in(self, slot: Slot, says: Says, environment: Environment, rest: Rest) -> z3.BoolRef:
        """Whether the slot's fact matches, with ``rest`` for the values that it gives."""

        def match(left: tuple[tuple[Term, z3.ExprRef], ...], found: Environment) -> z3.BoolRef:
            if not left:
                return rest(found)
            return self._unify(*left[0], found, lambda bound: match(left[1:], bound))

        pairs = ((says.conduit, slot.conduit), *zip(says.arguments, slot.arguments, strict=True))
        return z3.And(slot.present, match(pairs, environment))

    def _unify(self, term: Term, with_: z3.ExprRef, environment: Environment, rest: Rest) -> z3.BoolRef:
        if isinstance(term, Anything):
            return rest(environment)
        if isinstance(term, Variable) and term.name not in environment:
            return rest(environment | {term.name: with_})
        return z3.And(self._value(term, environment) == with_, rest(environment))

    def _value(self, term: Term, environment: Environment) -> z3.ExprRef:
        if isinstance(term, Variable):
            return environment[term.name]
        assert not isinstance(term, Anything)
        return self.this if isinstance(term, This) else value(term)

    def _computed(self, literal: Literal, environment: Environment, rest: Rest) -> z3.BoolRef:
        name, terms = literal.predicate, literal.arguments
        if name == "vType":
            return z3.And(_TYPES[str(terms[1])](self._value(terms[0], environment)), rest(environment))
        missing = next((i for i, term in enumerate(terms) if not self._known(term, environment)), None)
        if missing is None:
            known = [self._value(term, environment) for term in terms]
            holds = (_compared if len(known) == 2 else _calculated)(name, *known)
            return z3.And(holds, rest(environment))
        others = [self._value(term, environment) for i, term in enumerate(terms) if i != missing]
        if name == "eq":
            return self._unify(terms[missing], others[0], environment, rest)
        alternatives = []
        for found in _solutions(name, missing, *others):
            full = [*others[:missing], found, *others[missing:]]
            holds = z3.And(_fits(found), _calculated(name, *full))
            alternatives.append(z3.And(holds, self._unify(terms[missing], found, environment, rest)))
        return z3.Or(NO, *alternatives)


def _fits(of: z3.ExprRef) -> z3.BoolRef:
    """Whether it is a value: numbers and times have 64 bits."""
    number, moment = SORT.integer(of), SORT.seconds(of)
    return z3.And(
        z3.Implies(SORT.is_number(of), z3.And(number >= _LEAST, number <= _MOST)),
        z3.Implies(SORT.is_moment(of), z3.And(moment >= _FIRST, moment <= _LAST)),
    )


def _compared(name: str, x: z3.ExprRef, y: z3.ExprRef) -> z3.BoolRef:
    """Values of different types are unequal and not ordered."""
    if name == "ipPrefix":
        return z3.Or(NO, *(z3.And(x == value(inner), y == value(outer)) for inner, outer in addresses.WITHIN))
    if name in {"eq", "neq"}:
        return x == y if name == "eq" else x != y
    if name in {"gt", "ge"}:
        return _compared({"gt": "lt", "ge": "le"}[name], y, x)
    strict = z3.Or(
        z3.And(SORT.is_text(x), SORT.is_text(y), SORT.characters(x) < SORT.characters(y)),
        z3.And(SORT.is_number(x), SORT.is_number(y), SORT.integer(x) < SORT.integer(y)),
        z3.And(SORT.is_moment(x), SORT.is_moment(y), SORT.seconds(x) < SORT.seconds(y)),
    )
    return strict if name == "lt" else z3.Or(strict, x == y)


def _calculated(name: str, x: z3.ExprRef, y: z3.ExprRef, z: z3.ExprRef) -> z3.BoolRef:
    """Whether X is what Y and Z give. Overflow and division by zero give nothing."""
    if name == "concat":
        texts = z3.And(*(SORT.is_text(v) for v in (x, y, z)))
        return z3.And(texts, SORT.characters(x) == z3.Concat(SORT.characters(y), SORT.characters(z)))
    a, b = SORT.integer(y), SORT.integer(z)
    numbers = z3.And(SORT.is_number(x), SORT.is_number(y), SORT.is_number(z))
    if name in {"mul", "div", "rem"}:
        result, defined = _multiplied(name, a, b)
        return z3.And(numbers, defined, SORT.integer(x) == result, result >= _LEAST, result <= _MOST)
    sign = 1 if name == "add" else -1
    moved = SORT.seconds(y) + sign * b
    cases = [
        z3.And(numbers, SORT.integer(x) == a + sign * b, a + sign * b >= _LEAST, a + sign * b <= _MOST),
        z3.And(SORT.is_moment(x), SORT.is_moment(y), SORT.is_number(z), SORT.seconds(x) == moved,
               moved >= _FIRST, moved <= _LAST),
    ]  # fmt: skip
    if name == "sub":
        between = SORT.seconds(y) - SORT.seconds(z)
        cases.append(z3.And(SORT.is_number(x), SORT.is_moment(y), SORT.is_moment(z), SORT.integer(x) == between))
    return z3.Or(*cases)


def _multiplied(name: str, a: z3.ArithRef, b: z3.ArithRef) -> tuple[z3.ArithRef, z3.BoolRef]:
    if name == "mul":
        return a * b, YES
    size = z3.If(a < 0, -a, a) / z3.If(b < 0, -b, b)  # of no negative numbers Z3's division is the usual one
    quotient = z3.If((a < 0) == (b < 0), size, -size)
    return (quotient if name == "div" else a - quotient * b), b != 0


def _solutions(name: str, missing: int, first: z3.ExprRef, second: z3.ExprRef) -> list[z3.ExprRef]:
    """What may stand in the place of the missing argument; each is checked afterwards."""
    if name == "concat":
        return [_part(missing, SORT.characters(first), SORT.characters(second))]
    a, b = SORT.integer(first), SORT.integer(second)
    c, d = SORT.seconds(first), SORT.seconds(second)
    if name in {"mul", "div", "rem"}:
        return [SORT.number(_multiplied(name, a, b)[0])]
    if missing == 0:
        sign = 1 if name == "add" else -1
        return [SORT.number(a + sign * b), SORT.moment(c + sign * b), *([SORT.number(c - d)] if name == "sub" else [])]
    if name == "add":  # x = y + z
        return [SORT.number(a - b), SORT.moment(c - b), SORT.number(c - d)]
    if missing == 1:  # x = y - z
        return [SORT.number(a + b), SORT.moment(c + b), SORT.moment(a + d)]
    return [SORT.number(b - a), SORT.number(d - c), SORT.moment(d - a)]


def _part(missing: int, a: z3.SeqRef, b: z3.SeqRef) -> z3.ExprRef:
    """The whole of two parts; or, of a whole and a part, the other part."""
    if missing == 0:
        return SORT.text(z3.Concat(a, b))
    begin = z3.IntVal(0) if missing == 1 else z3.Length(b)
    return SORT.text(z3.SubString(a, begin, z3.Length(a) - z3.Length(b)))
