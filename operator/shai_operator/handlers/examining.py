# SPDX-License-Identifier: BSD-2-Clause
"""What admission examines without the monitors' parser: sizes, schedules, thresholds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from loadgen import thresholds
from shai_operator.reconcile import schedule

_REFUSED, _TOO_LARGE = 422, 413

_LARGEST_OBJECT = 1 << 20
"""Bytes of JSON. The API server stores little more than this, and its refusal names no remedy."""
_REMEDIES = {"FactSource": "leave its facts where they are, and name a file, Redis or a URL instead of spec.inline"}
_REMEDY = "divide it into several"


class Refusal(Exception):  # noqa: N818 - a refusal is no error of the operator's
    """An object is not admitted. ``code`` is the HTTP status; the text is for who sent the object."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def check_thresholds(body: dict[str, Any]) -> None:
    """Raise Refusal if a threshold of a Benchmark cannot be read; the text has the place in it."""
    problems = []
    for number, text in enumerate(body["spec"].get("thresholds") or ()):
        try:
            thresholds.parse(text)
        except thresholds.ThresholdError as error:
            problems.append(f"spec.thresholds[{number}]: {error}")
    if problems:
        raise Refusal(_REFUSED, "; ".join(problems))


async def check_schedule(body: dict[str, Any]) -> None:
    """Raise Refusal if the schedule of an OfflineAnalysis cannot be used or never fires; the text names the field."""
    spec = body["spec"]
    try:
        schedule.parse(spec["schedule"], spec.get("timeZone") or "Etc/UTC").next(datetime.now(UTC))
    except schedule.ScheduleError as error:
        raise Refusal(_REFUSED, str(error)) from error


def check_size(body: dict[str, Any]) -> None:
    """Raise Refusal if an object is too large to be stored."""
    size = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    if size <= _LARGEST_OBJECT:
        return
    kind, name = body["kind"], body["metadata"]["name"]
    raise Refusal(
        _TOO_LARGE,
        f"{kind} {name} is too large: it has {size / 1024:.0f} KiB, and {_LARGEST_OBJECT // 1024} KiB is the most that "
        f"an object may have; {_REMEDIES.get(kind, _REMEDY)}",
    )


def advice(body: dict[str, Any]) -> list[str]:
    """Return warnings for who sent an object that is admitted."""
    mode, name = body["spec"].get("mode"), body["metadata"]["name"]
    if body["kind"] == "Policy" and mode in ("Audit", "Warn"):
        return [f"Policy {name} is in mode {mode}: what it forbids is recorded, not denied"]
    if body["kind"] == "Pipeline" and mode in ("baseline", "audit"):
        return [f"Pipeline {name} is in mode {mode}: nothing is denied"]
    return []
