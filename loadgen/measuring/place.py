# SPDX-License-Identifier: BSD-2-Clause
"""Where sessions are measured: the programs and manifests that are measured, and the directories of a measurement."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.datasets import crowd
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.errors import LoadgenError
from loadgen.stacks import launcher, light, processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.stacks.launcher import Site

IMAGE = Path("build/images/default")
MANIFESTS = Path("crds/examples/syse")
"""In a checkout."""


class PlaceError(LoadgenError):
    """Sessions cannot be measured here; the text says why and what to do."""


@dataclass(frozen=True)
class Place:
    """The programs and manifests that are measured, and the directory for what is written, all absolute."""

    image: Path
    manifests: Path
    output: Path

    def beside(self, checkout: Path) -> Place:
        """Return the place of the same measurement for the programs and manifests of another checkout."""
        return replace(self, image=checkout / IMAGE, manifests=checkout / MANIFESTS)

    @property
    def data(self) -> Path:
        """The people and documents."""
        return self.output / "data"

    @property
    def held(self) -> Path:
        """The people and documents of the live sessions."""
        return self.output / "held"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.output / "logs"

    @property
    def site(self) -> Site:
        """What stacks are launched from."""
        return launcher.Site(
            shai=self.image / "bin" / "shai",
            data=self.data,
            seed=self.data / SEED_COMMANDS,
            state=self.output / "state",
            logs=self.logs,
            variables={
                "SYSE": str(self.image / "syse"),
                "KEYS": str(self.data / "facts" / "population.jsonl"),
            },
            runtimes=light.RUNTIMES,
            cores=frozenset(processes.split_cores()[0]),
        )

    def check(self) -> None:
        """Raise PlaceError when the programs are missing, or tasks could not run them."""
        if not self.image.exists():
            raise PlaceError(f"{self.image} is missing: run `make build-image` in its checkout")
        _check_searchable(self.image, "move its checkout")

    @contextlib.contextmanager
    def prepared(self, people: crowd.Crowd) -> Iterator[None]:
        """Lock the output directory and fill it; PlaceError when nothing can be measured in it."""
        with self.locked():
            crowd.make(self.data, people)
            shutil.rmtree(self.held, ignore_errors=True)
            yield

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the output directory, without data; PlaceError when nothing can be measured in it."""
        if os.geteuid() != 0:
            raise PlaceError("tasks run as users of their own, which needs root: run it with sudo")
        self.output.mkdir(parents=True, exist_ok=True)
        _check_searchable(self.output, "give another --output")
        with (self.output / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PlaceError(f"another measurement writes to {self.output}: wait for its end") from None
            for directory in (self.logs, self.site.state):
                directory.mkdir(exist_ok=True)
            yield


def revision(checkout: Path) -> str:
    """Return the commit of a checkout, or its path if it is none."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or str(checkout)


def _check_searchable(directory: Path, remedy: str) -> None:
    closed = [path for path in (directory, *directory.parents) if not path.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise PlaceError(f"tasks run as users that cannot search {closed[-1]}: {remedy}")
