# SPDX-License-Identifier: BSD-2-Clause
"""Whether a status is already as its writer wants it, as the API server has recorded it.

A writer owns the fields that it applied last, and the API server lists them in ``metadata.managedFields`` (server-side
apply). So an operator that starts knows, without a write, that an object's status needs none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

_CONDITIONS = "conditions"


def settled(obj: Object, writer: str, wanted: Mapping[str, Any]) -> bool:
    """Whether ``writer`` owns exactly the fields of ``wanted``, of conditions those types, with the same values."""
    present = status(obj)
    types = {condition["type"]: condition for condition in wanted.get(_CONDITIONS) or ()}
    others = {key: value for key, value in wanted.items() if key != _CONDITIONS}
    held = {condition["type"]: condition for condition in present.get(_CONDITIONS) or ()}
    return (
        _owned(obj, writer) == (set(wanted), set(types))
        and all(key in present and present[key] == value for key, value in others.items())
        and all(held.get(called) == condition for called, condition in types.items())
    )


def _owned(obj: Object, writer: str) -> tuple[set[str], set[str]]:
    """Return the fields of a status that a writer has applied, and the types of the conditions."""
    for entry in obj["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == (writer, "Apply", "status"):
            fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
            keys = [key[2:] for key in fields.get(f"f:{_CONDITIONS}") or {} if key.startswith("k:")]
            return (
                {field[2:] for field in fields if field.startswith("f:")},
                {str(json.loads(key).get("type")) for key in keys},
            )
    return set(), set()
