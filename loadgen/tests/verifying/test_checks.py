# SPDX-License-Identifier: BSD-2-Clause
"""The checks, with a fake Sys-E that leaks or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from loadgen.verifying import checks

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.datasets.population import Population
    from loadgen.tests.fake_syse import FakeSysE


def test_bobs_diary_is_found_by_bob_only(server: FakeSysE, people: Population, data: Path) -> None:
    document = checks.private_document(data, "bob")
    assert document == checks.Document("/corpus/private/bob/7.txt", "bob's diary")
    found = checks.compare(server.front_end, people["alice"], people["bob"], document)
    assert [len(found[name]) for name in ("alice", "bob")] == [1, 2]


def test_a_leak_in_the_comparison_is_an_error(server: FakeSysE, people: Population, data: Path) -> None:
    server.leaky = True
    document = checks.private_document(data, "bob")
    with pytest.raises(checks.EnforcementError, match="alice was shown bob's private document"):
        checks.compare(server.front_end, people["alice"], people["bob"], document)


@pytest.mark.parametrize(
    ("baseline", "confined", "message"),
    [(True, False, ""), (True, True, "although it was confined"), (False, False, "proves nothing")],
)
def test_the_leak_attempt_has_to_leak_without_enforcement(
    baseline: bool, confined: bool, message: str  # noqa: FBT001
) -> None:  # fmt: skip
    document = checks.Document("/corpus/private/bob/7.txt", "bob's diary")
    if not message:
        checks.judge({"leaked": baseline}, {"leaked": confined}, document)
        return
    with pytest.raises(checks.EnforcementError, match=message):
        checks.judge({"leaked": baseline}, {"leaked": confined}, document)


def test_the_audit_record_is_waited_for_and_its_absence_is_an_error() -> None:
    document = checks.Document("/corpus/private/bob/7.txt", "bob's diary")
    allowed: dict[str, Any] = {"conduit": document.conduit, "allowed": True}
    denied: dict[str, Any] = {"conduit": document.conduit, "allowed": False, "reason": "not bob"}
    answers = iter([[], [allowed], [allowed, denied]])
    record = checks.await_record(lambda: next(answers), document)
    assert record["reason"] == "not bob"
    assert record["clause"] == ""
    with pytest.raises(checks.EnforcementError, match="no audit record says why"):
        checks.await_record(lambda: [allowed], document, seconds=0.0)


def test_a_corpus_without_a_private_document_is_an_error(data: Path) -> None:
    with pytest.raises(checks.EnforcementError, match="no private document with a title"):
        checks.private_document(data, "carol")
