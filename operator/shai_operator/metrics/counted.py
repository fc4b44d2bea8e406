# SPDX-License-Identifier: BSD-2-Clause
"""What the process counts and times as it works; the names and meanings are those of the table.

The counters are thread-safe, and last as long as the process.
"""

from __future__ import annotations

from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from shai_operator.metrics.declared import BY_NAME
from shai_operator.reconcile.objects import PLURALS

disable_created_metrics()  # type: ignore[no-untyped-call]  # the table would have to list a series more for each
_Counted = TypeVar("_Counted", Counter, Gauge, Histogram)


def _made(kind: type[_Counted], name: str) -> _Counted:
    metric = BY_NAME[name]
    return kind(metric.name, metric.meaning, metric.label_names)


RECONCILE_SECONDS = _made(Histogram, "shai_operator_reconcile_seconds")
RECONCILE_ERRORS = _made(Counter, "shai_operator_reconcile_errors_total")
QUEUE_DEPTH = _made(Gauge, "shai_operator_queue_depth")
WATCH_LAG = _made(Gauge, "shai_operator_watch_lag_seconds")
API_REQUESTS = _made(Counter, "shai_operator_api_requests_total")
SCRAPES_REJECTED = _made(Counter, "shai_operator_scrapes_rejected_total")
ADMISSIONS_REJECTED = _made(Counter, "shai_operator_admissions_rejected_total")
LEADING = _made(Gauge, "shai_operator_leading")

for _kind in PLURALS:
    RECONCILE_ERRORS.labels(_kind)  # 0 before the first: alerts compare a counter with its own past
