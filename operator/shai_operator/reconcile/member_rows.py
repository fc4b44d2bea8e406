# SPDX-License-Identifier: BSD-2-Clause
"""The rows of members in the status of their pool.

They are the operator's memory. After a crash it reads from them with which configuration a member was provisioned, on
which host it is, and whose it is.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.conditions import FALSE, TRUE, timestamp
from shai_operator.reconcile.members import Observation, Progress
from shai_operator.reconcile.tenants import of_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.members import Standing

MESSAGE_LIMIT = 1024
"""Characters of a row's message that the schema allows."""


def row(member: Observation, standing: Standing) -> dict[str, Any]:
    """Return a member's row for its pool's status; empty fields are left out."""
    monitor = member.monitor
    written: dict[str, Any] = {
        "name": member.name,
        "ordinal": member.ordinal,
        "host": member.host,
        "address": member.address,
        "namespace": member.tenant.name,
        "namespaceUID": member.tenant.uid,
        "ready": TRUE if standing.ready else FALSE,
        "reason": standing.reason,
        "message": standing.message[:MESSAGE_LIMIT],
        "image": member.image,
        "configuration": member.configuration,
        "certificateEnds": timestamp(member.certificate_ends) if member.certificate_ends else "",
        # What is of somebody else does not become the member's own by being seen.
        "bundle": "" if member.foreign else monitor.bundle if monitor else member.bundle,
        "release": member.release,
        "sessions": monitor.sessions if monitor else 0,
        "drainingSince": timestamp(member.draining_since) if member.draining_since else "",
        "progress": asdict(member.job.progress) if member.job and member.job.progress != Progress() else None,
    }
    return {key: value for key, value in written.items() if value or key in {"ordinal", "sessions"}}


def from_row(written: Mapping[str, Any]) -> Observation:
    """Return the member that a row describes."""
    return Observation(
        name=written["name"],
        ordinal=int(written.get("ordinal", 0)),
        host=written.get("host", ""),
        address=written.get("address", ""),
        tenant=of_row(written),
        configuration=written.get("configuration", ""),
        image=written.get("image", ""),
        certificate_ends=_moment(written.get("certificateEnds")),
        bundle=written.get("bundle", ""),
        draining_since=_moment(written.get("drainingSince")),
        reason=written.get("reason", ""),
        served=written.get("ready") == TRUE,
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
