# SPDX-License-Identifier: BSD-2-Clause
"""The product against a second implementation of the documented language, which Z3 decides.

``--cases N`` asks more. The seed is printed with a failure; ``--seed N`` repeats it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import z3  # type: ignore[import-untyped]  # it has no stubs

from monitor.tests.differential import grammar, product
from monitor.tests.differential.grammar import THIS
from monitor.tests.differential.meaning import SORT, YES, Known, Slot, World, value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from monitor.tests.differential.grammar import Fact, Session
    from monitor.tests.differential.syntax import Policy, Value

BATCH = 400
SLOTS = 2
"""Facts of each relation in a model. A counterexample with more is not looked for."""
EFFORT = 200_000
"""Z3's measure of work for one question (rlimit), the same on every machine."""


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}: pytest {request.node.nodeid} --seed {seed}")
    return random.Random(seed)


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> int:
    number: int = request.config.getoption("--cases")
    return number


def present(of: Value | None) -> Known:
    return Known(z3.BoolVal(of not in {"", None}), value(of or ""))


def concrete(facts: Sequence[Fact], session: Session) -> World:
    given = {
        "sKeyIs": present(session.principal),
        "sRegionIs": present(session.region),
        "timeIs": present(session.time),
        "cNameIs": present(THIS),
        "cKindIs": present(session.kind),
    }
    slots = [Slot(YES, value(f.conduit), f.relation, tuple(map(value, f.arguments))) for f in facts]
    return World(value(THIS), given, tuple(slots))


def symbolic() -> tuple[World, list[z3.BoolRef]]:
    """Every session and every state with at most SLOTS facts of each relation, with what limits them."""
    limits: list[z3.BoolRef] = []

    def unknown(name: str, *, text: bool = False) -> z3.ExprRef:
        one = z3.Const(name, SORT)
        limits.append(z3.Implies(SORT.is_text(one), z3.Length(SORT.characters(one)) <= 64))
        limits.append(z3.Implies(SORT.is_number(one), z3.And(SORT.integer(one) >= -(2**63), SORT.integer(one) < 2**63)))
        limits.append(z3.Implies(SORT.is_moment(one), z3.And(SORT.seconds(one) >= 0, SORT.seconds(one) < 9 * 10**9)))
        if text:
            limits.extend([SORT.is_text(one), z3.Length(SORT.characters(one)) > 0])
        return one

    now = unknown("now")
    limits.append(SORT.is_moment(now))
    given = {
        "sKeyIs": Known(z3.Bool("authenticated"), unknown("principal", text=True)),
        "sRegionIs": Known(z3.Bool("located"), unknown("region", text=True)),
        "timeIs": Known(z3.Bool("clock"), now),
        "cNameIs": present(THIS),
        "cKindIs": Known(YES, unknown("kind", text=True)),
    }
    slots = []
    for relation, arity in grammar.RELATIONS.items():
        for n in range(SLOTS):
            name = f"{relation}{n}"
            arguments = tuple(unknown(f"{name}.{i}") for i in range(arity))
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


def evaluate(policy: Policy, operation: str, world: World) -> z3.BoolRef:
    return world.rule(policy.read if operation == "read" else policy.update)


def test_evaluation_is_as_documented(draw: random.Random, cases: int, tmp_path: Path) -> None:
    allowed = 0
    for batch in range(0, cases, BATCH):
        questions = []
        for n in range(batch, min(cases, batch + BATCH)):
            if n % 8 == 0:
                policy = grammar.policy(draw, f"p{n}")
            facts = tuple(grammar.facts(draw, policy))
            questions.append(product.Question(policy, draw.choice(("read", "update")), facts, grammar.session(draw)))
        for question, got in zip(questions, product.answers(tmp_path, questions), strict=True):
            expected = holds(evaluate(question.policy, question.operation, concrete(question.facts, question.session)))
            asked = f"{question.operation} {question.session} {question.facts}"
            assert got == expected, f"expected {expected}: {asked}\n{question.policy}"
            allowed += got
    print(f"{cases} evaluations, {allowed} allowed")
    assert 0.02 * cases < allowed < 0.98 * cases, "the questions say little: nearly all have one answer"


def counterexample(first: Policy, second: Policy, rule: str) -> z3.CheckSatResult:
    """Ask Z3 for a session and facts that the first allows and the second does not."""
    world, limits = symbolic()
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.add(*limits, evaluate(first, rule, world), z3.Not(evaluate(second, rule, world)))
    return solver.check()


def test_comparison_has_no_counterexample(draw: random.Random, cases: int, tmp_path: Path) -> None:
    counts = dict.fromkeys(("implied", "implied, not decided by Z3", "not implied", "incomplete", "cases"), 0)
    for _ in range(max(1, cases // 24)):
        first = grammar.policy(draw, "first", symbolic=True)
        second = grammar.related(draw, first, "second")
        if draw.random() < 0.5:
            first, second = second, first
        answer = product.compared(tmp_path, first, second)
        for rule, implied in answer.implied.items():
            found = counterexample(first, second, rule)
            if implied:
                assert found != z3.sat, f"the product says implied, wrongly, of {rule}:\n{first}{second}"
                counts["implied"] += 1
                counts["implied, not decided by Z3"] += found == z3.unknown
            else:
                counts["not implied"] += 1
                counts["incomplete"] += found == z3.unsat
        for case in answer.cases:
            world = concrete(case.facts, case.session)
            where = f"{case}:\n{first}{second}"
            assert holds(evaluate(first, case.rule, world)), f"the first does not allow {where}"
            assert not holds(evaluate(second, case.rule, world)), f"the second allows, too, {where}"
            counts["cases"] += 1
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    assert counts["implied"], "nothing was implied: the questions say nothing"
    assert counts["implied, not decided by Z3"] <= counts["implied"] / 4
