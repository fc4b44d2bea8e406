# SPDX-License-Identifier: BSD-2-Clause
"""Reads the few counters that the operator uses from a monitor's metrics, in the Prometheus text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from shai_operator.monitors.errors import MonitorAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WANTED = (b"shai_sessions_total", b"shai_decisions_total", b"shai_decision_seconds_sum")
MOST_LINES = 1 << 14
"""Lines of these counters: at most seven for each pipeline of a member, and seven more."""
MOST_BYTES = 1024
"""Bytes of one of these lines, whose labels are names of 63 characters; the parser copies a line for each label."""


def sums(metrics: bytes, what: str) -> dict[str, float]:
    """Return the sum of each counter; denied decisions are apart, with ``/denied`` after the name.

    MonitorAnswerError when the metrics are none, or too many; ``what`` begins its text.
    """
    lines: list[bytes] = []
    for name in _WANTED:
        for line in _lines(b"\n" + metrics, name):
            lines.append(line)
            if len(line) > MOST_BYTES or len(lines) > MOST_LINES:
                raise MonitorAnswerError(
                    f"{what}: a metric has a line of more than {MOST_BYTES} bytes, or they have more than {MOST_LINES}"
                )
    found: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(b"".join(lines).decode()):
            for measured in family.samples:
                key = measured.name + ("/denied" if measured.labels.get("allowed") == "false" else "")
                found[key] = found.get(key, 0.0) + measured.value
    except (ValueError, LookupError, TypeError) as error:  # of the parser, which says nowhere what it raises
        raise MonitorAnswerError(f"{what}: the metrics are not in Prometheus' text format: {error}") from error
    return found


def _lines(metrics: bytes, name: bytes) -> Iterator[bytes]:
    """Yield the lines of a metric, with their ends. The others, of which there can be millions, are not taken apart."""
    begin = metrics.find(b"\n" + name) + 1
    while begin:
        end = metrics.find(b"\n", begin) + 1 or len(metrics)
        if metrics[begin + len(name) : begin + len(name) + 1] in (b" ", b"\t", b"{"):
            yield metrics[begin:end]
        begin = metrics.find(b"\n" + name, end - 1) + 1
