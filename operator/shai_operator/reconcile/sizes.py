# SPDX-License-Identifier: BSD-2-Clause
"""How much the definitions of a namespace may be together.

They are checked together, by one parser for all namespaces, which takes about eighty times as much memory, and get onto
members together. An object alone is limited by the API server; their number is not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from shai_operator.reconcile.objects import created, reference, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shai_operator.reconcile.objects import Inventory, Object, Reference

MOST_BYTES = 6 << 20
"""Of the specs of all definitions of a namespace, as JSON. Five thousand policies of fifty lines have as much."""


def size(obj: Object) -> int:
    """Return the size of an object's spec as JSON, in bytes."""
    return len(json.dumps(spec(obj), ensure_ascii=False).encode(errors="replace"))


def beyond(objects: Iterable[Object], inventory: Inventory) -> dict[Reference, str]:
    """Return the objects of a namespace that are too much, the newest, and what is wrong with each."""
    total, found = 0, {}
    for obj in sorted(objects, key=lambda obj: (created(obj), reference(obj))):
        its = inventory.derived(obj, size)
        if total + its > MOST_BYTES:
            found[reference(obj)] = (
                f"with it ({its} bytes) the definitions of the namespace, older ones first, have more than "
                f"{MOST_BYTES} bytes; make them smaller, delete some, or use another namespace for a part"
            )
        else:
            total += its
    return found
