# SPDX-License-Identifier: BSD-2-Clause
"""The text that Prometheus scrapes.

Its series of each namespace are bounded. That bounds a scrape, and not what Prometheus has: it keeps the series of
deleted objects for its retention, and who makes and deletes objects has others in each scrape.
"""

from __future__ import annotations

import math
from collections import Counter
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from shai_operator.metrics import benchmarks, pipelines, pools
from shai_operator.metrics.declared import BY_NAME, LEFT_OUT, METRICS
from shai_operator.metrics.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shai_operator.metrics.declared import Metric
    from shai_operator.metrics.samples import Snapshot

SERIES = 6000
"""Series of a metric that one namespace's objects have in a scrape, the first ones: 500 pipelines with four conditions
have as many. Who may make objects can make any number, and must not make scrapes too large for Prometheus."""


class Format(Enum):
    """A format of the text; the value is its content type."""

    PLAIN = CONTENT_TYPE_LATEST
    OPENMETRICS = openmetrics.CONTENT_TYPE_LATEST

    @classmethod
    def accepted(cls, header: str) -> Format:
        """Return the format for a client that sends this header Accept."""
        return cls.OPENMETRICS if "application/openmetrics-text" in header else cls.PLAIN


def text(snapshot: Snapshot, wanted: Format) -> bytes:
    """Return what the process has counted, and what the snapshot says. It takes a while: call it in a thread."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Everything(snapshot))
    encode = openmetrics.generate_latest if wanted is Format.OPENMETRICS else generate_latest
    return encode(registry)


class _Everything(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Family]:
        """Return the process' families, then the objects' in the order of the table."""
        found = _bounded(_samples(self._snapshot))
        yield from REGISTRY.collect()
        yield from (_family(metric, found[metric.name]) for metric in METRICS if metric.name in found)


def _samples(snapshot: Snapshot) -> Iterator[Sample]:
    parts = (pools.samples(snapshot), pipelines.samples(snapshot), benchmarks.samples(snapshot))
    yield Sample("shai_operator_build_info", (snapshot.version,), 1)
    if not math.isnan(snapshot.certificate_ends):
        yield Sample("shai_operator_scrape_certificate_expiry_timestamp_seconds", (), snapshot.certificate_ends)
    yield from chain.from_iterable(parts)


def _bounded(samples: Iterable[Sample]) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the series of each metric, of each namespace at most so many, and how many were left out.

    A series that occurs twice counts once.
    """
    found: dict[str, dict[tuple[str, ...], float]] = {}
    exported = Counter[tuple[str, str]]()
    left_out: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
    for name, labels, value in samples:
        series = found.setdefault(name, {})
        if labels in series:
            continue
        if BY_NAME[name].of_users:
            others = left_out.setdefault(labels[0], set())
            if exported[name, labels[0]] == SERIES:
                others.add((name, labels))
                continue
            exported[name, labels[0]] += 1
        series[labels] = value
    if left_out:
        found[LEFT_OUT] = {(namespace,): len(others) for namespace, others in left_out.items()}
    return found


def _family(metric: Metric, series: dict[tuple[str, ...], float]) -> Family:
    family = Family(metric.name.removesuffix("_total"), metric.meaning, metric.type)
    for labels, value in series.items():
        family.add_sample(metric.name, dict(zip(metric.label_names, labels, strict=True)), value)
    return family
