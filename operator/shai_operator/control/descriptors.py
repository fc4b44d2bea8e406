# SPDX-License-Identifier: BSD-2-Clause
"""How many files and connections the operator may have open."""

from __future__ import annotations

import resource

ENOUGH = 65536


def raise_limit() -> None:
    """Raise the soft limit to what the hard limit allows, and to no more than is enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
