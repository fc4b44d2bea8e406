# SPDX-License-Identifier: BSD-2-Clause
"""The addresses of a pool's members, and whether a pipeline listens at other addresses.

Pools can share a host. A pipeline that listened at any address of the host could take the place of another pool's
pipeline or monitor.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import name, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.objects import Object

DEFAULT_RANGE = "127.0.10.0/24"
DEFAULT_PORT = 8443
_OWN = "$(MEMBER_ADDRESS)"
_MEMBER = "\udc80"
"""The address that _OWN stands for on each member: half a character, which no text from the API server has."""
_VARIABLE = re.compile(r"\$\(([^()]*)\)")
_PORT = re.compile(r"[0-9]{1,5}")
_LAST_PORT = 65535


def of_members(pool: Object) -> str:
    """Return the range of the members' addresses, as a CIDR."""
    return str(_network(pool).get("addresses") or DEFAULT_RANGE)


def port(pool: Object) -> int:
    """Return the TCP port of the members' monitors."""
    return int(_network(pool).get("monitorPort") or DEFAULT_PORT)


def endpoint(pool: Object, address: str) -> str:
    """Return where the monitor of the member with this address answers."""
    return joined(address, port(pool))


def joined(address: str, number: int) -> str:
    """Return an address with a port, as URLs have it."""
    return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"


def canonical(host: str) -> str:
    """Return a host's address as everything that compares hosts writes it.

    Forms of one IP address are one host, and capitals in a name and the dot after it mean nothing (RFC 4343, RFC 5952).
    Whether a name and an IP address are the same machine is not asked.
    """
    try:
        found = ip_address(host)
    except ValueError:
        return host.lower().removesuffix(".")
    return str(getattr(found, "ipv4_mapped", None) or found)


def refusal(pool: Object, pipeline: Object) -> str:
    """Say which address a pipeline may not listen at in a pool; empty: every address is allowed."""
    # As on members: the pool's variables take precedence, and the provider replaces $(MEMBER_ADDRESS) in their values.
    # The monitor replaces once, and nothing in a value.
    values = variables(pipeline) | {key: text.replace(_OWN, _MEMBER) for key, text in variables(pool).items()}
    values["MEMBER_ADDRESS"] = _MEMBER
    for conduit in spec(pipeline).get("conduits") or ():
        written = str(conduit.get("listen") or "")
        listen = substitute(written, values)
        if written and not _allowed(pool, listen):
            left = "; $(NAME) is not replaced in a variable's value, or if it is unknown" if "$(" in listen else ""
            return (
                f"conduit {conduit.get('name')} may not listen at {listen.replace(_MEMBER, _OWN)} (JailPool "
                f"{name(pool)} has the addresses {of_members(pool)}, and its monitors have port {port(pool)}); "
                f"write {_OWN} and another port{left}"
            )
    return ""


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) once, as monitors do: nothing in a value, and nothing unknown."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)


def _allowed(pool: Object, listen: str) -> bool:
    host, _, number = listen.rpartition(":")
    if not _PORT.fullmatch(number) or not 0 < int(number) <= _LAST_PORT or int(number) == port(pool):
        return False
    host = host.removeprefix("[").removesuffix("]")
    if host == _MEMBER:
        return True
    try:
        return ip_address(host) in ip_network(of_members(pool))
    except ValueError:
        return False


def _network(pool: Object) -> Mapping[str, Any]:
    return spec(pool).get("network") or {}


def variables(obj: Object) -> dict[str, str]:
    """Return the variables that a pool or a pipeline defines."""
    return {variable["name"]: str(variable.get("value") or "") for variable in spec(obj).get("variables") or ()}
