# SPDX-License-Identifier: BSD-2-Clause
"""What is compared: answers of the product with those of the second implementation. A difference fails an assertion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import z3  # type: ignore[import-untyped]  # it has no stubs

from monitor.tests.differential import grammar, product
from monitor.tests.differential.addresses import ADDRESSES, TEXTS
from monitor.tests.differential.grammar import THIS
from monitor.tests.differential.meaning import SORT, YES, Known, Slot, World, value
from monitor.tests.differential.pairs import Pair, pair

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from monitor.tests.differential.grammar import Fact, Session
    from monitor.tests.differential.syntax import Body, Policy, Value

CASES = 1200
"""Evaluations in a run, unless another number is asked for; of pairs of clauses it compares half as many."""
BATCH = 400
PAIRS = 240
"""Pairs in one policy, which may have 256 clauses."""
SLOTS = 2
"""Facts of each relation in a model. A counterexample with more is not looked for."""
EFFORT = 200_000
"""Z3's measure of work for one question (rlimit), the same on every machine."""


def present(of: Value | None) -> Known:
    return Known(z3.BoolVal(of not in {"", None}), value(of or ""))


def concrete(facts: Sequence[Fact], session: Session) -> World:
    given = {
        "sKeyIs": present(session.principal),
        "sRegionIs": present(session.region),
        "sIpIs": present(session.address),
        "timeIs": present(session.time),
        "cNameIs": present(THIS),
        "cKindIs": present(session.kind),
    }
    slots = [Slot(YES, value(f.conduit), f.relation, tuple(map(value, f.arguments))) for f in facts]
    return World(value(THIS), given, tuple(slots))


def symbolic(relations: frozenset[str], *, addresses: bool) -> tuple[World, list[z3.BoolRef]]:
    """Every session and every state with at most SLOTS facts of each of the relations, with what limits them."""
    limits: list[z3.BoolRef] = []

    def unknown(name: str, *, text: bool = False) -> z3.ExprRef:
        one = z3.Const(name, SORT)
        characters = SORT.characters(one)
        limits.append(z3.Implies(SORT.is_text(one), z3.Length(characters) <= 64))
        limits.append(z3.Implies(SORT.is_number(one), z3.And(SORT.integer(one) >= -(2**63), SORT.integer(one) < 2**63)))
        limits.append(z3.Implies(SORT.is_moment(one), z3.And(SORT.seconds(one) >= 0, SORT.seconds(one) < 9 * 10**9)))
        if addresses:
            other = z3.Not(z3.Or(z3.Contains(characters, "."), z3.Contains(characters, ":")))
            limits.append(z3.Or(z3.Not(SORT.is_text(one)), other, *(characters == text for text in TEXTS)))
        if text:
            limits.extend([SORT.is_text(one), z3.Length(characters) > 0])
        return one

    now, address = unknown("now"), unknown("address", text=True)
    limits.extend([SORT.is_moment(now), z3.Or(*(SORT.characters(address) == one for one in ADDRESSES))])
    given = {
        "sKeyIs": Known(z3.Bool("authenticated"), unknown("principal", text=True)),
        "sRegionIs": Known(z3.Bool("located"), unknown("region", text=True)),
        "sIpIs": Known(z3.Bool("connected"), address),
        "timeIs": Known(z3.Bool("clock"), now),
        "cNameIs": present(THIS),
        "cKindIs": Known(YES, unknown("kind", text=True)),
    }
    slots = []
    for relation in sorted(relations):
        for n in range(SLOTS):
            name = f"{relation}{n}"
            arguments = tuple(unknown(f"{name}.{i}") for i in range(grammar.RELATIONS[relation]))
            slots.append(Slot(z3.Bool(name), unknown(f"{name}.in", text=True), relation, arguments))
    return World(value(THIS), given, tuple(slots)), limits


def holds(formula: z3.BoolRef) -> bool:
    """Whether a formula without unknowns holds."""
    simple = z3.simplify(formula)
    if z3.is_true(simple) or z3.is_false(simple):
        return bool(z3.is_true(simple))
    solver = z3.Solver()
    found = solver.check(simple)
    assert found != z3.unknown, f"{solver.reason_unknown()}: {simple}"
    return bool(found == z3.sat)


def evaluation(shai: Path, directory: Path, draw: random.Random, cases: int) -> str:
    """Whether policies allow what they are documented to allow, and nothing else."""
    allowed = 0
    for batch in range(0, cases, BATCH):
        questions = []
        for n in range(batch, min(cases, batch + BATCH)):
            if n % 4 == 0:
                policy = grammar.policy(draw, f"p{n}")
            facts = tuple(grammar.facts(draw, policy))
            questions.append(product.Question(policy, draw.choice(("read", "update")), facts, grammar.session(draw)))
        for question, got in zip(questions, product.answers(shai, directory, questions), strict=True):
            world = concrete(question.facts, question.session)
            expected = holds(world.rule(_rule(question.policy, question.operation)))
            asked = f"{question.operation} {question.session} {question.facts}"
            assert got == expected, f"expected {expected}: {asked}\n{question.policy}"
            allowed += got
    assert 0.02 * cases < allowed < 0.98 * cases, "the questions say little: nearly all have one answer"
    return f"{cases} evaluations, {allowed} allowed"


def _rule(policy: Policy, operation: str) -> tuple[tuple[Body, ...], ...]:
    return policy.read if operation == "read" else policy.update


def counterexample(of: Pair) -> z3.CheckSatResult:
    """Ask Z3 for a session and facts that the first clause allows and the second does not."""
    bodies = [*of.first, *of.second]
    relations = frozenset(one.relation for one in grammar.said(bodies))
    addresses = any("ipPrefix" in str(one) for one in bodies)
    world, limits = symbolic(relations, addresses=addresses)
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.add(*limits, world.rule((of.first,)), z3.Not(world.rule((of.second,))))
    return solver.check()


def comparison(shai: Path, directory: Path, draw: random.Random, cases: int) -> str:
    """Whether what the product calls implied has no counterexample, and the cases that it shows are some."""
    pairs = [pair(draw) for _ in range(max(1, cases // 2))]
    pairs += [replace(one, first=one.second, second=one.first) for one in pairs]
    counts = dict.fromkeys(("implied", "implied, not decided by Z3", "not implied", "cases"), 0)
    for batch in range(0, len(pairs), PAIRS):
        some = pairs[batch : batch + PAIRS]
        for asked, got in zip(some, product.compared(shai, directory, some), strict=True):
            counts["implied" if got.implied else "not implied"] += 1
            if got.implied:
                found = counterexample(asked)
                assert found != z3.sat, f"the product says implied, wrongly, of\n{asked}"
                counts["implied, not decided by Z3"] += found == z3.unknown
            elif got.case:
                _shows(asked, got.case)
                counts["cases"] += 1
    assert min(counts["implied"], counts["cases"]) > 0, f"the questions say little: {counts}"
    assert counts["implied, not decided by Z3"] <= counts["implied"] / 4, counts
    return ", ".join(f"{number} {what}" for what, number in counts.items())


def _shows(of: Pair, case: product.Case) -> None:
    world = concrete(case.facts, case.session)
    assert holds(world.rule((of.first,))), f"the first does not allow {case}:\n{of}"
    assert not holds(world.rule((of.second,))), f"the second allows, too, {case}:\n{of}"
