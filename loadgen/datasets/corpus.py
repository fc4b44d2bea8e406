# SPDX-License-Identifier: BSD-2-Clause
"""Makes a data directory for Sys-E: corpus, facts, demo keys, queries, and commands for the key-value store.

python -m loadgen dataset --size quick --output out/data

A pool's spec.data.source and spec.keyValue.seed point to it and to its profiles.resp.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.datasets import files
from loadgen.datasets.commands import write_seed_commands
from loadgen.datasets.sizes import DATASETS
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Sequence

    from loadgen.datasets.sizes import Dataset

ABOUT = "dataset.json"
"""A file of a data directory: its size."""
_STAMP = "corpus.sha256"
_ROOT = Path(__file__).resolve().parents[2]


class DatasetError(LoadgenError):
    """A data directory cannot be made; the text has the cause."""


@dataclass(frozen=True)
class Generator:
    """Sys-E's corpus generator."""

    jar: Path
    java: Path

    def command(self, dataset: Dataset, seed: int, directory: Path) -> list[str]:
        """Return its command line."""
        return [
            str(self.java), "-cp", str(self.jar), "dev.shai.syse.CorpusGenerator",
            "--from", dataset.corpus, "--documents", str(dataset.documents), "--users", str(dataset.users),
            "--friends", str(dataset.friends), "--seed", str(seed), "--out", str(directory),
        ]  # fmt: skip


def make(
    directory: Path, dataset: Dataset, seed: int, generator: Generator, run: Callable[[Sequence[str]], None]
) -> bool:
    """Fill a directory, unless it was made with the same parameters before; return whether it was filled.

    ``run`` runs the generator's command to its end. If the generator has changed, everything is made again.
    """
    words = generator.command(dataset, seed, directory)
    digest = hashlib.sha256("\0".join(words).encode())
    digest.update(generator.jar.read_bytes())
    if _stamp(directory) == digest.hexdigest():
        return False
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    run(words)
    write_seed_commands(directory)
    (directory / ABOUT).write_text(json.dumps({**asdict(dataset), "seed": seed}, indent=2) + "\n")
    (directory / _STAMP).write_text(digest.hexdigest())  # written last, so that an interrupted run is repeated
    return True


def describe(directory: Path) -> dict[str, Any]:
    """Return the size of a data directory; empty for one that was made in another way."""
    try:
        found = json.loads(files.read(directory, ABOUT))
    except (files.DataFileError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _stamp(directory: Path) -> str:
    try:
        return files.read(directory, _STAMP)
    except files.DataFileError:
        return ""


def find_java() -> tuple[Path, Path]:
    """Find the Java program and its home, both as real paths, which the sandbox needs."""
    found = shutil.which("java")
    if found is None:
        raise DatasetError("java is not on PATH: run `make setup`, which installs it")
    program = Path(found).resolve()
    return program, program.parent.parent


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--size", choices=DATASETS, default="quick")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same data")
    parser.add_argument("--output", type=Path, required=True, help="the data directory; what is in it is replaced")
    parser.add_argument("--syse", type=Path, default=_ROOT / "build" / "syse", help="directory of Sys-E's programs")


def run(options: Namespace) -> None:
    """Make a data directory; DatasetError when it cannot be made."""
    jar, dataset = options.syse / "syse.jar", DATASETS[options.size]
    if not jar.exists():
        raise DatasetError(f"{jar} is missing: run `make build`")
    generator = Generator(jar, find_java()[0])
    made = make(options.output.resolve(), dataset, options.seed, generator, generate)
    description = f"{dataset.documents} documents, {dataset.users} users, seed {options.seed}"
    print(f"{options.output}: {description} {'made' if made else 'were there already'}")


def generate(words: Sequence[str]) -> None:
    """Run the generator's command to its end; DatasetError when it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise DatasetError(f"the corpus generator ended with status {done.returncode}: {' '.join(words)}")
