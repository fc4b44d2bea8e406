# SPDX-License-Identifier: BSD-2-Clause
"""Makes the corpus with Sys-E's generator, unless the one at hand was made from the same orders."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from loadgen.plan import Plan
    from loadgen.workspace import Workspace

_STAMP = "corpus.sha256"


def command(place: Workspace, plan: Plan, seed: int, java: Path) -> list[str]:
    """Return the generator's command line."""
    return [
        str(java), "-cp", str(place.syse / "syse.jar"), "dev.shai.syse.CorpusGenerator",
        "--from", plan.corpus, "--documents", str(plan.documents), "--users", str(plan.users),
        "--friends", str(plan.friends), "--seed", str(seed), "--out", str(place.data),
    ]  # fmt: skip


def make(place: Workspace, words: Sequence[str], run: Callable[[Sequence[str]], None]) -> bool:
    """Run the generator's command if needed; whether it was. A changed generator makes it anew."""
    digest = hashlib.sha256("\0".join(words).encode())
    digest.update((place.syse / "syse.jar").read_bytes())
    stamp = place.data / _STAMP
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return False
    shutil.rmtree(place.data, ignore_errors=True)
    place.data.mkdir(parents=True)
    run(words)
    stamp.write_text(digest.hexdigest())
    return True
