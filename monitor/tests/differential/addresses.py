# SPDX-License-Identifier: BSD-2-Clause
"""The addresses and prefixes that random policies, facts and sessions have, and which lies in which.

Z3 knows no addresses. Of these the table below says what lies in what; any other text has neither ``.`` nor ``:``, so
that it is no address.
"""

from __future__ import annotations

from ipaddress import ip_network

ADDRESSES = ("10.0.0.1", "10.1.0.1", "192.0.2.1", "2001:db8::1")
PREFIXES = ("10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24", "10.1.0.0/16", "0.0.0.0/0", "2001:db8::/32", "2001:db8::1")
TEXTS = tuple(dict.fromkeys((*ADDRESSES, *PREFIXES)))


def _within(text: str, prefix: str) -> bool:
    inner, outer = ip_network(text), ip_network(prefix)
    return inner.version == outer.version and outer.prefixlen <= inner.prefixlen and inner[0] in outer


def _near(text: str, prefix: str) -> bool:
    one, other = ip_network(text), ip_network(prefix)
    return one.version == other.version and one.overlaps(other)


NEAR = tuple((text, prefix) for text in TEXTS for prefix in PREFIXES if _near(text, prefix))
"""Of these one lies in the other, but not always the first in the second."""
WITHIN = tuple((text, prefix) for text in TEXTS for prefix in TEXTS if _within(text, prefix))
