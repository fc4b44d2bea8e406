# SPDX-License-Identifier: BSD-2-Clause
"""The enforcement that a pool requires of its members' machines (spec.requires), and whether a member has it.

A monitor says in its status what confines tasks on its machine, as `shai doctor` does. A member with less is not used:
its monitor gets an empty bundle, so nothing runs there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shai_operator.reconcile import machines
from shai_operator.reconcile.bundles import Bundle, facts, release
from shai_operator.reconcile.objects import name, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object

_NOTHING, _DEFAULT = "None", "CapsicumModule"
_MODULE = "capsicum+shai.ko"
_SUFFICIENT = {"Capsicum": ("capsicum", _MODULE), _DEFAULT: (_MODULE,)}


def required(pool: Object) -> str:
    """Return the enforcement that a pool requires: None, Capsicum or CapsicumModule."""
    return str(spec(pool).get("requires") or (_DEFAULT if machines.has_machines(pool) else _NOTHING))


def judged(pool: Object, known: Iterable[Observation]) -> dict[str, Observation]:
    """Return members by name, with the reason why their enforcement is insufficient."""
    needed = required(pool)
    return {member.name: replace(member, insufficient=_insufficient(member, needed)) for member in known}


def empty_bundle(pool: Object) -> Bundle:
    """Return the bundle for members that are not to be used."""
    return Bundle(release(name(pool), "", (), {}), facts(()))


def _insufficient(member: Observation, needed: str) -> str:
    monitor = member.monitor
    if needed == _NOTHING or monitor is None or monitor.backend in _SUFFICIENT[needed]:
        return ""
    return (
        f"its machine confines tasks with {monitor.backend or 'nothing'}, and spec.requires is {needed} "
        f"({' or '.join(_SUFFICIENT[needed])}): run shai doctor there, load the module, or lower spec.requires"
    )
