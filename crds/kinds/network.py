# SPDX-License-Identifier: BSD-2-Clause
"""The network of a JailPool: the addresses of its members and of their virtual machines."""

from __future__ import annotations

from crds.schema import distinct, immutable, number, record, rule, text

ADDRESSES = "self.network.addresses"
MACHINES = "self.network.machines"


def prefix(of: str) -> str:
    """Return an expression for a range's prefix in the sense of IPv4; the range's first and last address are unused."""
    return f"(cidr({of}).prefixLength() - (cidr({of}).ip().family() == 6 ? 96 : 0))"


_IS_RANGE = (
    rule("isCIDR(self)", "not a range of addresses; expected a form such as 127.0.10.0/24"),
    rule(
        "!isCIDR(self) || cidr(self) == cidr(self).masked()",
        "the range does not begin at this address; set the bits after the prefix to zero",
    ),
)

_STAYS = immutable("the hosts' bridge and the jails would keep the earlier one beside it; make another pool")
_SUBNET = "(has(self.subnet) ? self.subnet : self.machines)"

NETWORK = record(
    "Addresses of the members.",
    {
        "addresses": text(
            "The range, as a CIDR; the member with ordinal i has the (i+1)th address that a machine can have. "
            "Immutable.",
            longest=64,
            default="127.0.10.0/24",
            rules=(*_IS_RANGE, immutable("members are known by their addresses; make another pool")),
        ),
        "monitorPort": number("Port of the members' monitors.", least=1, most=65535, default=8443),
        "machines": text(
            "The range of the virtual machines, as a CIDR; machine k has the (k+1)th address that a machine can have. "
            "Provider bhyve only. Immutable.",
            longest=64,
            rules=(*_IS_RANGE, immutable("virtual machines are known by their addresses; make another pool")),
        ),
        "subnet": text(
            "The network that addresses and machines are parts of, as a CIDR. Left out: each of them is a network of "
            "its own, and members have no router. Provider bhyve only. Immutable.",
            longest=64,
            rules=(*_IS_RANGE, _STAYS),
        ),
        "gateway": text(
            "The router, an address of the subnet (or of machines, if there is no subnet) that no virtual machine and "
            "no member gets. Left out: there is no default route. Provider bhyve only. Immutable.",
            longest=64,
            rules=(rule("isIP(self)", "not an address; expected a form such as 198.51.100.254"), _STAYS),
        ),
        "nameservers": distinct(
            "The virtual machines' name servers. Provider bhyve only.",
            text(
                "An address.",
                longest=64,
                rules=(rule("isIP(self)", "not an address; expected a form such as 198.51.100.254"),),
            ),
            most=3,
        ),
        "uplink": text(
            "The hosts' network interface to which virtual machines are bridged; left out: they have a bridge of their "
            "own, without a way out of the host. Provider bhyve only. Immutable.",
            longest=15,
            pattern=r"^[a-z][a-z0-9_.]*$",
            rules=(_STAYS,),
        ),
    },
    default={},
    rules=(
        rule(
            "!has(self.machines) || !isCIDR(self.machines) || !isCIDR(self.addresses) || "
            "!(cidr(self.machines).containsCIDR(self.addresses) || cidr(self.addresses).containsCIDR(self.machines))",
            "machines and addresses overlap; virtual machines and members need ranges of their own",
        ),
        rule(
            f"!has(self.gateway) || !has(self.machines) || !isIP(self.gateway) || !isCIDR({_SUBNET}) || "
            f"cidr({_SUBNET}).containsIP(self.gateway)",
            "gateway is not in subnet, or in machines if there is no subnet; the virtual machines could not reach it",
        ),
        rule(
            "!has(self.subnet) || !isCIDR(self.subnet) || [self.addresses, self.machines].all(range, !isCIDR(range) || "
            "cidr(self.subnet).containsCIDR(range))",
            "subnet does not contain addresses and machines; make it larger, or leave it out",
        ),
        rule("has(self.machines) == has(oldSelf.machines)", "machines cannot be added or removed; make another pool"),
        *(
            rule(f"has(self.{field}) == has(oldSelf.{field})", f"{field} cannot be added or removed; make another pool")
            for field in ("subnet", "gateway", "uplink")
        ),
    ),
)
