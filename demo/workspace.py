# SPDX-License-Identifier: BSD-2-Clause
"""The demo's directories: the built programs, and its output."""

from __future__ import annotations

import fcntl
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator


class WorkspaceError(LoadgenError):
    """The checkout is not ready; the text names the missing file and the remedy."""


_ELSEWHERE = Path("/var/lib/shai-demo")


def default_output(root: Path) -> Path:
    """Return the demo's output directory: in the checkout if other users can reach it, else in /var/lib.

    Tasks run as users of their own, and in mode baseline open their programs and data themselves. The home directory of
    root is usually closed to them.
    """
    output = root / "out" / "demo"
    existing = [path for path in (output, *output.parents) if path.exists()]
    return output if all(path.stat().st_mode & stat.S_IXOTH for path in existing) else _ELSEWHERE


@dataclass(frozen=True)
class Workspace:
    """Paths of one demo run, all absolute."""

    root: Path
    output: Path
    size: str

    @property
    def shai(self) -> Path:
        """The program of the command line and the monitor."""
        return self.root / "build" / "bin" / "shai"

    @property
    def devcluster(self) -> Path:
        """The Kubernetes control plane, and kubectl."""
        return self.root / "build" / "bin" / "devcluster"

    @property
    def images(self) -> Path:
        """The images from which members are installed."""
        return self.root / "build" / "images"

    @property
    def generator(self) -> Path:
        """Sys-E's Java programs, the corpus generator among them."""
        return self.root / "build" / "syse" / "syse.jar"

    @property
    def examples(self) -> Path:
        """The manifests, which Kubernetes uses, too."""
        return self.root / "crds" / "examples" / "syse"

    @property
    def data(self) -> Path:
        """Corpus, facts and index; kept for later runs of the same size."""
        return self.output / self.size / "data"

    @property
    def members(self) -> Path:
        """The directory of the pool's members, beside the data, which are hard-linked into it."""
        return self.output / "members"

    @property
    def scrape(self) -> Path:
        """What Prometheus is configured from: its configuration, the rules, and who is there."""
        return self.output / "scrape"

    @property
    def results(self) -> Path:
        """What the report was made from."""
        return self.output / "results"

    @property
    def report(self) -> Path:
        """The page with what was measured, and what was stopped."""
        return self.output / "report.html"

    @property
    def current(self) -> Path:
        """Says that a demo of this checkout is running, and where."""
        return self.root / "out" / "demo" / "current.json"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.output / "logs"

    def prepare(self) -> None:
        """Make the directories; WorkspaceError when a program is not built."""
        for path in (self.shai, self.devcluster, self.images / "default", self.generator):
            if not path.exists():
                raise WorkspaceError(f"{path} is missing: run `make build`")
        for path in (self.data, self.logs):
            path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the output directory against a second demo."""
        self.output.mkdir(parents=True, exist_ok=True)
        with (self.output / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WorkspaceError(
                    f"another demo is running in {self.output}: end it first, with Ctrl-C in its terminal"
                ) from None
            yield
