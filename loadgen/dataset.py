# SPDX-License-Identifier: BSD-2-Clause
"""Makes a data directory for Sys-E: corpus, facts, demo keys, queries, and commands for the key-value store.

python -m loadgen.dataset --size quick --output out/data

A pool's spec.data.source and spec.keyValue.seed point to it and to its profiles.resp.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen import stores, workspace
from loadgen.plan import DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.plan import Dataset

SEED_COMMANDS = "profiles.resp"
"""What is loaded into a new key-value store, in the data directory."""

_ABOUT = "dataset.json"
_STAMP = "corpus.sha256"
_ROOT = Path(__file__).resolve().parent.parent


class DatasetError(Exception):
    """A data directory could not be made; the text has the cause."""


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
    """Fill a directory, unless it has been made from the same orders before; whether it was.

    ``run`` runs the generator's command to its end. A changed generator makes everything anew.
    """
    words = generator.command(dataset, seed, directory)
    digest = hashlib.sha256("\0".join(words).encode())
    digest.update(generator.jar.read_bytes())
    stamp = directory / _STAMP
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return False
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    run(words)
    write_seed_commands(directory)
    (directory / _ABOUT).write_text(json.dumps({**asdict(dataset), "seed": seed}, indent=2) + "\n")
    stamp.write_text(digest.hexdigest())  # last: what is cut off is made anew
    return True


def describe(directory: Path) -> dict[str, Any]:
    """Return what is known of a data directory's size; empty for one that was made in another way."""
    try:
        found: dict[str, Any] = json.loads((directory / _ABOUT).read_text())
    except (OSError, ValueError):
        return {}
    return found


def write_seed_commands(directory: Path) -> int:
    """Write every person's profile as a command for the key-value store; the number of commands."""
    lines = (directory / "profiles.jsonl").read_text(encoding="utf-8").splitlines()
    with (directory / SEED_COMMANDS).open("wb") as file:
        for line in lines:
            file.write(stores.encode("SET", f"profile:{json.loads(line)['user']}", line))
    return len(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a data directory; 0 when it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=DATASETS, default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True, help="the data directory; what is in it is replaced")
    parser.add_argument("--syse", type=Path, default=_ROOT / "build" / "syse", help="directory of Sys-E's programs")
    options = parser.parse_args(arguments)
    dataset = DATASETS[options.size]
    try:
        generator = Generator(options.syse / "syse.jar", workspace.java()[0])
        made = make(options.output.resolve(), dataset, options.seed, generator, _run)
    except (DatasetError, OSError, workspace.WorkspaceError) as error:
        print(f"dataset: {error}", file=sys.stderr)
        return 1
    what = f"{dataset.documents} documents, {dataset.users} users, seed {options.seed}"
    print(f"{options.output}: {what} {'made' if made else 'were there already'}")
    return 0


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise DatasetError(f"the corpus generator ended with status {done.returncode}: {' '.join(words)}")


if __name__ == "__main__":
    sys.exit(main())
