# SPDX-License-Identifier: BSD-2-Clause
"""The flows that a change would open and close. A member's monitor computes them before anything is enforced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.counts import count

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LISTED = 20
"""Entries that the schema allows in each list; the totals count all."""
_FLOW_FIELDS = (
    "task", "instance", "instances", "access", "conduits", "conduit", "policy", "classes", "documents", "flows",
)  # fmt: skip
_FLOW_LISTS = ("opened", "closed", "wouldClose", "wouldOpen")
_MODE_FIELDS = ("kind", "name", "from", "to", "effect")
_NUMBERS = (
    "flowsBefore", "flowsAfter", "openedTotal", "closedTotal", "wouldCloseTotal", "wouldOpenTotal", "modesTotal",
    "usersTotal", "documentsTotal",
)  # fmt: skip
_NAME_LISTS = ("users", "documents")


@dataclass(frozen=True)
class Effect:
    """A monitor's comparison of two releases."""

    before: str
    """Name of the release that the member had in force."""
    after: str
    """Name of the release with which it was compared."""
    comparison: Mapping[str, Any]
    """The monitor's answer to POST /v1/comparisons."""

    def number(self, field: str) -> int:
        """Return a total, such as ``closedTotal``; 0 when the monitor left it out."""
        return int(self.comparison.get(field) or 0)

    def closed_share(self, pipelines: Collection[str]) -> tuple[int, int]:
        """Return how many flows of these pipelines would be closed, and how many are open now.

        Flows of a pipeline that the change removes are not counted, because closing them is intended. The monitor lists
        only the largest groups; flows that it does not list count as closed.
        """
        leaving = sum(
            int(flow.get("flows") or 0)
            for flow in self.comparison.get("closed") or ()
            if flow.get("pipeline") not in pipelines
        )
        return max(self.number("closedTotal") - leaving, 0), max(self.number("flowsBefore") - leaving, 0)

    def summary(self) -> str:
        """Describe the change in a sentence."""
        return (
            f"it opens {count(self.number('openedTotal'), 'flow')} and closes {self.number('closedTotal')} of "
            f"{self.number('flowsBefore')}, for {count(self.number('usersTotal'), 'user')} and "
            f"{count(self.number('documentsTotal'), 'document')}{self._by_choice()}{self._by_modes()}"
        )

    def _by_choice(self) -> str:
        flows = self.number("wouldOpenTotal")
        said = f", and lets principals open {flows} more by choosing policies" if flows else ""
        asking = self._asking()
        if not asking:
            return said
        more = f" and {len(asking) - 3} more" if len(asking) > 3 else ""  # noqa: PLR2004 - as many as of modes
        return (
            f"{said}; what else they open by choices for single documents is not known, since these policies ask for "
            f"those of other documents: {', '.join(asking[:3])}{more}"
        )

    def _asking(self, pipeline: str | None = None) -> list[str]:
        """Return the policies, of one pipeline or of all, because of which flows that choices open are not known."""
        entries = self.comparison.get("wouldOpenNotKnown") or ()
        return sorted({one for entry in entries if pipeline in {None, entry["pipeline"]} for one in entry["policies"]})

    def _by_modes(self) -> str:
        """Say which modes change, the first three; the monitor says what happens to accesses that are forbidden."""
        modes = list(self.comparison.get("modes") or ())
        said = [
            f"; {mode.get('kind')} {mode.get('name')} "
            + (f"changes from {mode['from']} to" if mode.get("from") else "is new in")
            + f" mode {mode.get('to')}: {mode.get('effect')}"
            for mode in modes[:3]
        ]
        more = max(self.number("modesTotal"), len(modes)) - len(said)
        return "".join(said) + (f"; {count(more, 'other mode')} change" if more > 0 else "")

    def of_pipeline(self, pipeline: str) -> dict[str, Any]:
        """Return the effect for a Pipeline's status: of this pipeline, with the totals of the whole change.

        Policies are those of the namespace: each change of a policy's mode is told to every pipeline.
        """
        written: dict[str, Any] = {
            "from": str(self.comparison.get("from") or ""),
            "to": str(self.comparison.get("to") or ""),
        }
        for field in _NUMBERS:
            written[field] = self.number(field)
        for field in _FLOW_LISTS:
            flows = self.comparison.get(field) or ()
            own = [flow for flow in flows if flow.get("pipeline", pipeline) == pipeline]
            written[field] = [_only(flow, _FLOW_FIELDS) for flow in own[:LISTED]]
        written["wouldOpenNotKnown"] = self._asking(pipeline)[:LISTED]
        modes = self.comparison.get("modes") or ()
        told = [mode for mode in modes if mode.get("kind") != "Pipeline" or mode.get("name") == pipeline]
        written["modes"] = [_only(mode, _MODE_FIELDS) for mode in told[:LISTED]]
        for field in _NAME_LISTS:
            written[field] = [str(flow) for flow in (self.comparison.get(field) or ())[:LISTED]]
        return written


def _only(entry: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    return {field: entry[field] for field in fields if field in entry}
