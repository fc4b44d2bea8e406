# SPDX-License-Identifier: BSD-2-Clause
"""Random policies, facts and sessions of the fragment that ``meaning`` covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from monitor.tests.differential import addresses
from monitor.tests.differential.addresses import ADDRESSES, PREFIXES
from monitor.tests.differential.syntax import (
    Anything,
    Body,
    Each,
    Literal,
    Policy,
    Says,
    Term,
    This,
    Time,
    Value,
    Variable,
    used,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

THIS = "/the/conduit"
TEXTS = ("a", "b", "ab", "list/a", "list/b", THIS)
NUMBERS = (0, 1, 2, 3, -7, 2**63 - 1, -(2**63))
TIMES = tuple(Time(1_800_000_000 + seconds) for seconds in (0, 1, 60))
LISTS = ("list/a", "list/b", "a-b")
PRINCIPALS = ("a", "b", "ab")
REGIONS = ("de", "a")
KINDS = ("file", "tuple")
RELATIONS = {"p": 1, "q": 1, "r": 2}
COMPARISONS = ("eq", "neq", "lt", "le", "gt", "ge")
ARITHMETIC = ("add", "sub", "mul", "div", "rem")


@dataclass(frozen=True)
class Fact:
    conduit: str
    relation: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Session:
    """Who asks, from where, when; for an update also what kind the conduit is of. Empty or None: there is none."""

    principal: str = ""
    region: str = ""
    address: str = ""
    time: Time | None = None
    kind: str = "file"


def constant(draw: random.Random) -> Value:
    values: tuple[Value, ...] = (*TEXTS, *TEXTS, *NUMBERS, *TIMES)
    return draw.choice(values)


@dataclass
class ClauseMaker:
    """Draws the literals of one clause. What is ``bound`` has a value by a literal that is drawn already."""

    draw: random.Random
    update: bool
    symbolic: bool  # no products of two unknown numbers, which nobody decides
    bound: list[Variable] = field(default_factory=list)
    names: int = 0

    def fresh(self) -> Variable:
        self.names += 1
        return Variable(f"X{self.names}")

    def known(self) -> Term:
        """A term that has a value."""
        if self.bound and self.draw.random() < 0.75:
            return self.draw.choice(self.bound)
        return This() if self.draw.random() < 0.1 else constant(self.draw)

    def open(self, new: list[Variable]) -> Term:
        """A term that may get its value here; then it is added to ``new``."""
        if self.draw.random() < 0.5:
            return self.known()
        if self.draw.random() < 0.1:
            return Anything()
        new.append(self.fresh())
        return new[-1]

    def literal(self, depth: int = 0) -> Body:
        kinds: list[Callable[[], Body]] = [self.given, self.given, self.says, self.says, self.says, self.compare]
        kinds += [self.compare, self.compute, self.concat, self.vtype, self.prefix]
        if depth == 0:
            kinds += [self.each, self.each]
        return self.draw.choice(kinds)()

    def given(self) -> Body:
        new: list[Variable] = []
        choice = self.draw.choice(
            ("sKeyIs", "sKeyIs", "sRegionIs", "sIpIs", "timeIs", *(("cNameIs", "cKindIs") if self.update else ()))
        )
        if choice == "cKindIs":
            return Literal(choice, (self.draw.choice(KINDS),))
        if choice == "sIpIs" and self.draw.random() < 0.3:
            return Literal(choice, (self.draw.choice(ADDRESSES),))
        term = self.open(new)
        self.bound += new
        return Literal(choice, (term,))

    def tuples(self, conduit: Term) -> tuple[Says, list[Variable]]:
        new: list[Variable] = []
        relation = self.draw.choice(tuple(RELATIONS))
        return Says(conduit, relation, tuple(self.open(new) for _ in range(RELATIONS[relation]))), new

    def conduit(self) -> Term:
        return self.draw.choice(self.bound) if self.bound and self.draw.random() < 0.2 else self.draw.choice(LISTS)

    def says(self) -> Body:
        made, new = self.tuples(self.conduit())
        self.bound += new
        return made

    def compare(self) -> Body:
        name = self.draw.choice(COMPARISONS)
        if name == "eq" and self.draw.random() < 0.3:
            left, right = self.fresh(), self.known()
            self.bound.append(left)
            return Literal("eq", (left, right))
        if self.symbolic and self.bound:
            # Of two constants the answer is known: then nothing would follow from it.
            others: tuple[Term, ...] = (*NUMBERS[:4], *TIMES, *PRINCIPALS[:2], *self.bound)
            sides: list[Term] = [self.draw.choice(self.bound), self.draw.choice(others)]
            self.draw.shuffle(sides)
            return Literal(name, tuple(sides))
        one = self.known()
        return Literal(name, (one, one if self.draw.random() < 0.1 else self.known()))

    def operand(self) -> Term:
        """A term that a sum may be of, unless a variable has another type; often at the ends of what numbers can be."""
        if self.bound and self.draw.random() < 0.4:
            return self.draw.choice(self.bound)
        others: tuple[Term, ...] = (*NUMBERS, *NUMBERS[-2:], *TIMES[:1])
        return self.draw.choice(others)

    def compute(self) -> Body:
        name = self.draw.choice(ARITHMETIC[:2] if self.symbolic else ARITHMETIC)
        if self.symbolic:
            terms: list[Term] = [self.known(), self.known(), self.draw.choice(NUMBERS[:5])]
        else:
            terms = [self.operand(), self.operand(), self.operand()]
        at = self.draw.randrange(3) if name in {"add", "sub"} else 0
        if self.draw.random() < 0.8:
            new = self.fresh()
            terms[at] = new
            self.bound.append(new)
        return Literal(name, tuple(terms))

    def concat(self) -> Body:
        terms: list[Term] = [self.known(), self.draw.choice(("a", "list/", self.known())), self.known()]
        if self.draw.random() < 0.8:
            new = self.fresh()
            terms[self.draw.randrange(3)] = new
            self.bound.append(new)
        return Literal("concat", tuple(terms))

    def prefix(self) -> Body:
        if self.draw.random() < 0.6:
            return Literal("ipPrefix", (self.known(), self.draw.choice(PREFIXES)))
        return Literal("ipPrefix", self.draw.choice(addresses.NEAR))

    def vtype(self) -> Body:
        # The second argument is a word; as a text it is written without quotes.
        return Literal("vType", (self.known(), self.draw.choice(("string", "integer", "time"))))

    def each(self) -> Body:
        outside = list(self.bound)
        of, new = self.tuples(self.conduit())
        self.bound += new
        condition = tuple(self.literal(depth=1) for _ in range(self.draw.choice((1, 1, 2))))
        self.bound = outside
        return Each(of, condition)


def clause(draw: random.Random, *, update: bool) -> tuple[Body, ...]:
    maker = ClauseMaker(draw, update, symbolic=False)
    if draw.random() < 0.4:
        # One literal about constants or the values of one tuple: its answer is the clause's.
        about = draw.choice((maker.compare, maker.compare, maker.compute, maker.compute, maker.concat, maker.prefix))
        made = [maker.says()] if draw.random() < 0.6 else []
        made.append(about())
    else:
        made = [maker.literal() for _ in range(draw.choice((1, 2, 2, 3, 3, 4)))]
    draw.shuffle(made)  # the order does not matter
    return used(tuple(made))


def policy(draw: random.Random, name: str) -> Policy:
    def rule(*, update: bool) -> tuple[tuple[Body, ...], ...]:
        return tuple(clause(draw, update=update) for _ in range(draw.choice((1, 1, 2, 3))))

    return Policy(name, rule(update=False), rule(update=True))


def said(bodies: Iterable[Body]) -> Iterator[Says]:
    """Every question for facts."""
    for body in bodies:
        if isinstance(body, Says):
            yield body
        elif isinstance(body, Each):
            yield body.of
            yield from said(body.condition)


def constants(bodies: Iterable[Body]) -> Iterator[Value]:
    """Every value that is written: with it, or just beside it, answers change."""
    for body in bodies:
        if isinstance(body, Each):
            yield from constants((body.of, *body.condition))
        elif not isinstance(body, Literal) or body.predicate not in {"vType", "cKindIs"}:
            yield from (one for one in body.arguments if isinstance(one, str | int | Time))


def facts(draw: random.Random, of: Policy) -> list[Fact]:
    """Facts, most of which some literal of the policy asks for."""
    bodies = [body for clause in (*of.read, *of.update) for body in clause]
    questions, written = list(said(bodies)), list(constants(bodies))
    found: dict[Fact, None] = {}  # each once, in order

    for _ in range(draw.randrange(9)):
        # Those of one tuple are often of one type, or equal: only such ones have an order or a sum.
        alike = draw.choice((None, None, TEXTS, NUMBERS, NUMBERS, TIMES, addresses.TEXTS, (constant(draw),)))

        def some(alike: Sequence[Value] | None = alike) -> Value:
            if alike and draw.random() < 0.8:
                return draw.choice(alike)
            return draw.choice(written) if written and draw.random() < 0.6 else constant(draw)

        relation = draw.choice(tuple(RELATIONS))
        one = Fact(draw.choice(LISTS), relation, tuple(some() for _ in range(RELATIONS[relation])))
        if questions and draw.random() < 0.8:
            asked = draw.choice(questions)
            conduit = asked.conduit if isinstance(asked.conduit, str) and asked.conduit else draw.choice(LISTS)
            arguments = tuple(a if isinstance(a, str | int | Time) else some() for a in asked.arguments)
            one = Fact(conduit, asked.relation, arguments)
        found[one] = None
    return list(found)


def session(draw: random.Random) -> Session:
    return Session(
        principal=draw.choice(("", *PRINCIPALS, *PRINCIPALS)),
        region=draw.choice(("", *REGIONS, *REGIONS)),
        address=draw.choice(("", *ADDRESSES)),
        time=draw.choice((None, *TIMES, *TIMES)),
        kind=draw.choice(KINDS),
    )
