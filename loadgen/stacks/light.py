# SPDX-License-Identifier: BSD-2-Clause
"""A light variant of Sys-E's pipeline, in which sessions and queries cost more than searching.

The fast engine, which needs no index, takes the place of the Lucene engines. Policies, front end, pipes, channels and
key-value store are those of the example.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from loadgen.stacks import manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

ENGINE, FRONT_END = "search", "worker"
"""The tasks that serve, in the order in which they start."""

_LEFT_OUT = frozenset({"indexer", "search-back", "index", "forward", "partial"})


def derive(documents: Sequence[dict[str, Any]], pipeline: str, busy_cycles: int = 0) -> list[dict[str, Any]]:
    """Return the light variant of Sys-E's manifests; ManifestError when they are of another pipeline.

    Each query keeps a processor busy for about ``busy_cycles`` cycles, in place of a search.
    """
    derived = copy.deepcopy([entry for entry in documents if not _is_left_out(entry)])
    spec = manifests.find(derived, pipeline)["spec"]
    spec["tasks"] = [name for name in spec["tasks"] if name not in _LEFT_OUT]
    spec["conduits"] = [conduit for conduit in spec["conduits"] if conduit["name"] not in _LEFT_OUT]
    engine = manifests.find_task(derived, ENGINE)["spec"]
    engine["command"] = [
        "$(SYSE)/syse-engine", "--documents", "/shai/view", "--queries", "/shai/pipe/queries",
        "--results", "/shai/channel/results", "--busy-cycles", str(busy_cycles), "--fault", "$(FAULT)",
    ]  # fmt: skip
    engine["runtime"] = manifests.find_task(derived, FRONT_END)["spec"]["runtime"]
    engine["reads"], engine["writes"] = ["documents", "queries"], ["results"]
    return derived


def _is_left_out(entry: dict[str, Any]) -> bool:
    return entry["kind"] == "Task" and entry["metadata"]["name"] in _LEFT_OUT
