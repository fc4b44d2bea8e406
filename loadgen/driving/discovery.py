# SPDX-License-Identifier: BSD-2-Clause
"""Where Prometheus looks for who is there, and what it is told of a load generator: whose load it is.

Namespaces may have pipelines of the same name, so what is counted of them is told apart by the labels of its target.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

CLUSTER = "shai"
"""The value of the label ``cluster`` for an operator that is told no other."""


@dataclass(frozen=True)
class Discovery:
    """A discovery directory, and the labels of the load's target."""

    directory: Path
    cluster: str = CLUSTER
    namespace: str = ""
    """Of the pipeline that gets the load; empty: it is of no namespace."""

    @property
    def labels(self) -> dict[str, str]:
        """The labels besides the job."""
        return {"cluster": self.cluster, **({"namespace": self.namespace} if self.namespace else {})}

    @property
    def options(self) -> dict[str, str]:
        """The options that say the same."""
        return {"scrape": str(self.directory), "cluster": self.cluster, "namespace": self.namespace}

    @property
    def words(self) -> list[str]:
        """These options as words of a command line."""
        return [word for name, value in self.options.items() for word in (f"--{name}", value)]

    @classmethod
    def of(cls, options: Namespace) -> Discovery | None:
        """Return what the options say; None if Prometheus is told nothing."""
        if not options.scrape:
            return None
        return cls(Path(options.scrape), options.cluster or CLUSTER, options.namespace or "")


def add_options(group: _ActionsContainer) -> None:
    """Add the options."""
    group.add_argument(
        "--scrape", metavar="DIR", help="announce the metrics of this process to Prometheus in DIR/targets"
    )
    group.add_argument("--cluster", metavar="NAME", help=f"with --scrape: the metrics' label cluster ({CLUSTER})")
    group.add_argument("--namespace", metavar="NAME", help="with --scrape: the metrics' label namespace (none)")
