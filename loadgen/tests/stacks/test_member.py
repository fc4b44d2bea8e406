# SPDX-License-Identifier: BSD-2-Clause
"""A member's description, and the address of its front end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.stacks import member
from loadgen.stacks.member import Member, MemberError
from loadgen.stacks.monitor import Monitor

if TYPE_CHECKING:
    from loadgen.stacks.stack import Stack


def attached(listen: str, variables: dict[str, str], given: dict[str, str]) -> Stack:
    """Attach a member with a pipeline that listens there; ``given`` are variables of the pipeline."""
    nobody = Path("/nonexistent")
    known = Member("main-0", "syse", nobody, nobody, nobody, nobody, processes=(1,), variables=variables)
    web = {"name": "web", "kind": "connection", "task": "worker", "listen": listen, "service": f"{listen}0"}
    desk = {"name": "desk", "kind": "connection", "task": "support", "listen": f"{listen.rpartition(':')[0]}:4"}
    spec = {
        "conduits": [web, desk] if ":" in listen else [web],
        "variables": [{"name": name, "value": value} for name, value in given.items()],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Monitor, "pipeline", lambda *_: {"tasks": [], "mode": "shai"})
        return known.attach([{"kind": "Pipeline", "metadata": {"name": "syse"}, "spec": spec}])


@pytest.mark.parametrize(
    ("listen", "variables", "given", "address"),
    [
        ("127.0.0.1:80", {}, {}, ("127.0.0.1", 80)),
        ("[::1]:65535", {}, {}, ("::1", 65535)),
        ("$(A):$(P)", {"A": "127.0.0.1"}, {"A": "127.0.0.2", "P": "4711"}, ("127.0.0.1", 4711)),
        ("$(ALL)", {}, {"ALL": "127.0.0.1:80"}, ("127.0.0.1", 80)),
    ],
)
def test_variables_of_an_address_are_replaced(
    listen: str, variables: dict[str, str], given: dict[str, str], address: tuple[str, int]
) -> None:
    assert attached(listen, variables, given).address == address


def test_every_task_that_serves_users_has_its_own_front_end() -> None:
    stack = attached("$(A):80", {"A": "127.0.0.3"}, {})
    assert (stack.front_end.address, stack.front_end.service) == (("127.0.0.3", 80), "127.0.0.3:800")
    (support,) = stack.beside.values()
    assert (support.address, support.service) == (("127.0.0.3", 4), "127.0.0.3:4")


@pytest.mark.parametrize(
    ("listen", "variables", "given", "says"),
    [
        # The monitor does not replace in values.
        ("$(H):80", {"A": "127.0.0.1"}, {"H": "$(A)"}, r"listens at '\$\(A\):80', of which no variable is known"),
        ("$(A)$(B):80", {"C": "127.0.0.1"}, {"A": "$(", "B": "C)"}, "of which no variable is known"),
        ("127.0.0.1:$(P)", {}, {}, "of which no variable is known"),
        ("127.0.0.1:$(P)", {"P": "65536"}, {}, "listens at '127.0.0.1:65536', which has no port"),
        ("127.0.0.1:$(P)", {"P": "\N{SUPERSCRIPT TWO}"}, {}, "which has no port"),
        ("127.0.0.1:$(P)", {"P": "9" * 5000}, {}, "which has no port"),
        ("127.0.0.1", {}, {}, "which has no port"),
    ],
)
def test_what_is_no_address_is_refused(
    listen: str, variables: dict[str, str], given: dict[str, str], says: str
) -> None:
    with pytest.raises(MemberError, match=says):
        attached(listen, variables, given)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"variables": {"P": 80}}, "'variables' is missing or of another type"),
        ({"variables": ["a"]}, "'variables' is missing or of another type"),
        ({"variables": "x"}, "'variables' is missing or of another type"),
        ({"runtimes": {"java": "/lib"}}, "'runtimes' is missing or of another type"),
        ({"runtimes": {"java": [7]}}, "'runtimes' is missing or of another type"),
        ({"runtimes": ["java"]}, "'runtimes' is missing or of another type"),
        ({"sources": "https://facts.example"}, "'sources' is missing or of another type"),
        ({"sources": [7]}, "'sources' is missing or of another type"),
        ({"twins": ["a"]}, "of another type"),
        ({"monitor": 7}, "of another type"),
    ],
)
def test_a_description_of_other_types_is_refused(tmp_path: Path, wrong: dict[str, Any], says: str) -> None:
    places = dict.fromkeys(("image", "data", "manifests", "program"), str(tmp_path))
    right = {"name": "main-0", "pipeline": "syse", **places, "monitor": {"socket": "/x"}, "variables": {"P": "80"}}
    right["runtimes"] = {"java": ["/lib"]}
    path = tmp_path / "member.json"
    path.write_text(json.dumps(right))
    assert (member.read(path).variables, member.read(path).runtimes) == ({"P": "80"}, {"java": ["/lib"]})
    path.write_text(json.dumps({**right, "sources": ["https://facts.example"]}))
    assert member.read(path).sources == ("https://facts.example",)
    path.write_text(json.dumps({**right, **wrong}))
    with pytest.raises(MemberError, match=says):
        member.read(path)
