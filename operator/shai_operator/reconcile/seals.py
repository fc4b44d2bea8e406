# SPDX-License-Identifier: BSD-2-Clause
"""Distinguishes objects that the operator made from objects that somebody else wrote.

Anybody who may create an object can set its names, labels, owners and managers, but not its seal. A seal is a keyed
hash (HMAC-SHA-256) of an object's kind, names and spec. The key is only in the operator's own namespace.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import GROUP, name, namespace, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

ANNOTATION = f"{GROUP}/seal"
_PURPOSE = b"shai.dev/seal/v1"


class Seal:
    """Seals objects and verifies seals. ``secret`` is the operator's; it may have other uses, too."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _PURPOSE, hashlib.sha256)

    def put_on(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of an object with its seal."""
        metadata = body["metadata"]
        annotations = {**(metadata.get("annotations") or {}), ANNOTATION: self._of(body)}
        return {**body, "metadata": {**metadata, "annotations": annotations}}

    def is_on(self, obj: Object) -> bool:
        """Whether an object has a valid seal."""
        found = (obj["metadata"].get("annotations") or {}).get(ANNOTATION, "")
        return hmac.compare_digest(str(found).encode(), self._of(obj).encode())

    def _of(self, obj: Object) -> str:
        content = [obj["kind"], namespace(obj), name(obj), spec(obj)]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
