# SPDX-License-Identifier: BSD-2-Clause
"""Sys-E with its Lucene engine under enforcement, in an installation of its own, on data that it may change."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from loadgen.datasets import corpus
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.stacks import launcher, processes, stack
from loadgen.stacks.launcher import Site
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadgen.stacks.stack import Stack
    from loadgen.stacks.supervisor import Supervisor

PIPELINE = "syse"
INDEXER = "indexer"
SERVING = ("index-follower", *stack.SERVING)
"""The tasks that run once the indexer has ended: the index follows the documents, and is searched."""

_HOST = "127.0.0.1"
_LIBRARIES = ("/lib", "/usr/lib", "/lib64")


def site(image: Path, output: Path) -> Site:
    """Return what an installation is launched from: the programs of an image, and data in ``output``."""
    java, home = corpus.find_java()
    data = output / "data"
    return Site(
        shai=image / "bin" / "shai",
        data=data,
        seed=data / SEED_COMMANDS,
        state=output / "state",
        logs=output / "logs",
        variables={
            "SYSE": str(image / "syse"),
            "KEYS": str(data / "facts" / "population.jsonl"),
            "JAVA": str(java),
        },
        runtimes={
            "java": [str(home), "$(SYSE)", "/etc/java-17-openjdk", *_LIBRARIES],
            "front-end": ["$(SYSE)", *_LIBRARIES],
        },
        cores=frozenset(processes.split_cores()[0]),
    )


@contextlib.contextmanager
def serving(where: Site, documents: Sequence[dict[str, Any]], supervisor: Supervisor) -> Iterator[Stack]:
    """Analyse, index and serve what is in a site's data; end it all at the end."""
    where.state.mkdir(parents=True, exist_ok=True)
    with launcher.launching(where, documents, PIPELINE, supervisor, SERVING) as launched:
        running = launched.launch(launcher.CONFINED, (_HOST, free_port(_HOST)))
        running.analyze()
        running.monitor.call("task", "start", PIPELINE, INDEXER, "--wait")
        running.serve()
        yield running
