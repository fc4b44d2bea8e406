# SPDX-License-Identifier: BSD-2-Clause
"""What Prometheus scrapes, in the format of its service discovery by file and by HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import addresses
from shai_operator.reconcile.objects import name, status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shai_operator.reconcile.objects import Object

MONITOR_JOB = "shai-monitor"
"""The job of the members' monitors. The scrape configuration sets the label, not the targets."""


def members(pools: Sequence[Object], cluster: str) -> list[dict[str, Any]]:
    """Return the monitors of all members that are installed: a group for each, with its labels."""
    return [
        {
            "targets": [addresses.endpoint(pool, str(row["address"]))],
            "labels": {
                "cluster": cluster,
                "namespace": str(row.get("namespace") or ""),
                "pool": name(pool),
                "member": str(row["name"]),
            },
        }
        for pool in pools
        for row in status(pool).get("members") or ()
        if row.get("address") and row.get("configuration")
    ]


def operator(host: str, port: int, cluster: str) -> list[dict[str, Any]]:
    """Return the operator that serves metrics at this address, for a Prometheus on the same machine."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - every address of the machine
    return [{"targets": [addresses.joined(reached, port)], "labels": {"cluster": cluster}}]
