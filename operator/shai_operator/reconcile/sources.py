# SPDX-License-Identifier: BSD-2-Clause
"""Which sources of facts and which stores a pool lets the objects of its namespace name.

The owner of the JailPool lists them. The monitors enforce the list. The operator sends them nothing that they would
refuse, and says so in the status of the object.

Without the facts of a source, policies can allow more than with them: what is blocked is a fact, too. So while a
FactSource of a namespace is not allowed, the pool runs no pipeline of the namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile import addresses, allowlist, references, tenancy
from shai_operator.reconcile.objects import name, namespace, reference, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Inventory, Object, Reference

REASON = "SourceNotAllowed"
_OF_THE_MEMBER = ("IMAGE", "DATA", "MEMBER_ADDRESS", "REDIS_SOCKET")
_UNKNOWN, _STORE = "\udc80", "\udc81"
"""What a variable of the member stands for here: half a character, which no text from the API server has. The second
is the socket of the member's own store."""


def listed(pool: Object) -> tuple[str, ...]:
    """Return the entries of a pool's list, as they are written."""
    return tuple(spec(pool).get("allowedSources") or ())


def refusals(pool: Object, inventory: Inventory, space: str) -> dict[Reference, str]:
    """Return the FactSources of a namespace that a pool does not allow, and why."""
    found = ((reference(source), _refusal(pool, source)) for source in inventory.all("FactSource", space))
    return {ref: why for ref, why in found if why}


def source_refusal(source: Object, inventory: Inventory) -> str:
    """Say why a pool that runs pipelines of the FactSource's namespace does not allow it; empty: all of them do."""
    space = namespace(source)
    for pool_name in sorted({references.pool(pipeline) for pipeline in inventory.all("Pipeline", space)}):
        pool = inventory.find("JailPool", "", pool_name)
        if pool is not None and tenancy.served_namespace(pool) == space and (why := _refusal(pool, source)):
            return why
    return ""


def pipeline_refusal(pool: Object, pipeline: Object, inventory: Inventory) -> str:
    """Say why a pool does not run a pipeline: because of its store, or of a FactSource of its namespace."""
    refused = refusals(pool, inventory, namespace(pipeline))
    first = next((f"FactSource {ref.name}: {why}" for ref, why in refused.items()), "")
    return store_refusal(pool, pipeline) or first


def store_refusal(pool: Object, pipeline: Object) -> str:
    """Say why a pool does not run a pipeline with this store; empty: it may.

    A store that confines tasks is the member's own: the monitor logs in there with its password. In mode baseline tasks
    connect as their own users, and the store may be a listed one.
    """
    written = (spec(pipeline).get("keyValue") or {}).get("socket")
    if written is None:
        return ""
    socket = _replaced(str(written), pool, pipeline)
    if socket == _STORE:
        return ""
    if references.mode(pipeline) != "baseline":
        return (
            f"spec.keyValue.socket is {written}, and in JailPool {name(pool)} tasks use only the store of its members; "
            "write $(REDIS_SOCKET), and if it has none, ask its owner to set spec.keyValue.mode to Managed"
        )
    return "" if _allowed(pool).allows_socket(socket) else _unlisted(pool, f"unix:{written}")


def _refusal(pool: Object, source: Object) -> str:
    """Say why a pool does not allow a FactSource; empty: it does, or nothing is fetched for it."""
    redis, http = spec(source).get("redis"), spec(source).get("http")
    if redis is not None:
        written = str(redis.get("socket") or "")
        socket = _replaced(written, pool)
        if socket != _STORE and not _allowed(pool).allows_socket(socket):
            return _unlisted(pool, f"unix:{written}")
    if http is not None:
        written = str(http.get("url") or "")
        if not _allowed(pool).allows_url(_replaced(written, pool)):
            return _unlisted(pool, written)
    return ""


def _unlisted(pool: Object, written: str) -> str:
    # As the author wrote it: the values of a pool's variables, and its list, are for those who may read the JailPool.
    return (
        f"JailPool {name(pool)} does not allow {written}; ask its owner to list it in spec.allowedSources, or name "
        "another source"
    )


def _allowed(pool: Object) -> allowlist.AllowList:
    try:
        return allowlist.parse(listed(pool))
    except allowlist.SourceError:
        return allowlist.AllowList()  # the pool's condition Provisioned says what is wrong


def _replaced(text: str, pool: Object, pipeline: Object | None = None) -> str:
    """Replace $(NAME) as a monitor of the pool does, where the values are the same on all members."""
    managed = (spec(pool).get("keyValue") or {}).get("mode") == "Managed"
    own: Mapping[str, str] = dict.fromkeys(_OF_THE_MEMBER, _UNKNOWN) | ({"REDIS_SOCKET": _STORE} if managed else {})
    values = addresses.variables(pipeline) if pipeline is not None else {}
    for variable, value in addresses.variables(pool).items():
        replaced = value
        for called, marker in own.items():
            replaced = replaced.replace(f"$({called})", marker)
        values[variable] = replaced
    # A pool without a store defines no REDIS_SOCKET, and a pipeline may.
    values |= {called: marker for called, marker in own.items() if managed or called != "REDIS_SOCKET"}
    return addresses.substitute(text, values)
