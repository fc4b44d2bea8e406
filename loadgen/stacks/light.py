# SPDX-License-Identifier: BSD-2-Clause
"""Writes manifests of Sys-E with its fast engine, which needs no index and no Java, in the place of the Lucene engines.

python -m loadgen light out/light --busy-cycles 900000
shai apply -f out/light

Policies, front end, pipes, channels and key-value store are those of the example.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.stacks import manifests

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

ENGINE, FRONT_END = "search", "worker"
"""The tasks that serve, in the order in which they start."""

RUNTIMES = {"front-end": ["$(SYSE)", "/lib", "/usr/lib", "/lib64"]}
"""What the tasks execute and read beside their conduits: paths by the names that they give."""

_EXAMPLE = Path(__file__).resolve().parents[2] / "crds" / "examples" / "syse"
_TASKS = frozenset({"indexer", "index-follower", "search-back"})
_CONDUITS = frozenset({"index", "forward", "partial"})
"""What only the Lucene engines need."""


def derive(documents: Sequence[dict[str, Any]], pipeline: str, busy_cycles: int = 0) -> list[dict[str, Any]]:
    """Return the light variant of Sys-E's manifests; ManifestError when they are of another pipeline.

    Each query keeps a processor busy for about ``busy_cycles`` cycles, in place of a search.
    """
    derived = copy.deepcopy([entry for entry in documents if not _is_left_out(entry)])
    spec = manifests.find(derived, pipeline)["spec"]
    spec["tasks"] = [name for name in spec["tasks"] if name not in _TASKS]
    spec["conduits"] = [conduit for conduit in spec["conduits"] if conduit["name"] not in _CONDUITS]
    engine = manifests.find_task(derived, ENGINE)["spec"]
    engine["command"] = [
        "$(SYSE)/syse-engine", "--documents", "/shai/view", "--queries", "/shai/pipe/queries",
        "--results", "/shai/channel/results", "--busy-cycles", str(busy_cycles), "--fault", "$(FAULT)",
    ]  # fmt: skip
    engine["runtimeName"] = manifests.find_task(derived, FRONT_END)["spec"]["runtimeName"]
    engine["reads"], engine["writes"] = ["documents", "queries"], ["results"]
    return derived


def _is_left_out(entry: dict[str, Any]) -> bool:
    return entry["kind"] == "Task" and entry["metadata"]["name"] in _TASKS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("directory", type=Path, help="where bundle.yaml is written")
    parser.add_argument("--manifests", type=Path, default=_EXAMPLE, help="Sys-E's manifests")
    parser.add_argument("--busy-cycles", type=int, default=0, help="what a search costs, in cycles (0)")


def run(options: Namespace) -> None:
    """Write the manifests; print the file's path."""
    print(manifests.write(options.directory, derive(manifests.read(options.manifests), "syse", options.busy_cycles)))
