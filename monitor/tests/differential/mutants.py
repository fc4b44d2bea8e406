# SPDX-License-Identifier: BSD-2-Clause
"""Show that tests find the mistakes of ``mutants.yaml``: build with each, run the check that has to find it.

``python -m monitor.tests.differential.mutants [NAME …] [--runs N] [--cases N]``. The exit code is 1 if one is found in
no more than half of its runs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from monitor.tests.differential import checks

if TYPE_CHECKING:
    from collections.abc import Callable

MONITOR = Path(__file__).resolve().parents[2]
CHECKS: dict[str, Callable[[Path, Path, random.Random, int], str]] = {
    "comparison": checks.comparison,
    "evaluation": checks.evaluation,
}


@dataclass(frozen=True)
class Mutant:
    name: str
    found: str
    """By what: a name of CHECKS, or a regular expression of the names of Go's tests beside the file."""
    file: str
    before: str
    after: str

    def text(self) -> str:
        """Return the file with the mistake."""
        source = (MONITOR / self.file).read_text()
        assert source.count(self.before) == 1, f"mutant {self.name}: {self.file} does not have once:\n{self.before}"
        return source.replace(self.before, self.after)


def read() -> list[Mutant]:
    """Return all mutants of the list."""
    return [Mutant(**one) for one in yaml.safe_load(Path(__file__).with_name("mutants.yaml").read_text())["mutants"]]


def _built(mutant: Mutant, directory: Path) -> Path:
    """Build ``shai``, or the tests beside the file, with the mistake."""
    changed = directory / "changed.go"
    changed.write_text(mutant.text())
    overlay = directory / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(MONITOR / mutant.file): str(changed)}}))
    program = directory / "program"
    tests = mutant.found not in CHECKS
    build = ["go", "test", "-c"] if tests else ["go", "build", "-ldflags", "-s -w"]  # less to link
    package = f"./{Path(mutant.file).parent}" if tests else "./cmd/shai"
    subprocess.run([*build, "-overlay", str(overlay), "-o", str(program), package], cwd=MONITOR, check=True)
    return program


def _finds(mutant: Mutant, program: Path, directory: Path, seed: int, cases: int) -> bool:
    if mutant.found not in CHECKS:
        how = ["-rapid.nofailfile", "-rapid.shrinktime=0s", f"-rapid.seed={seed + 1}"]
        test = [str(program), "-test.run", mutant.found, *how]
        done = subprocess.run(test, cwd=(MONITOR / mutant.file).parent, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1}, done.stderr
        assert "no tests to run" not in done.stderr, f"mutant {mutant.name}: no test is called {mutant.found}"
        return done.returncode == 1
    try:
        CHECKS[mutant.found](program, directory, random.Random(seed), cases)
    except AssertionError:
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutants; none: all")
    parser.add_argument("--runs", type=int, default=3, help="each with other random questions")
    parser.add_argument("--cases", type=int, default=checks.CASES, help="as of the tests")
    arguments = parser.parse_args()
    all_found = True
    for mutant in read():
        if arguments.names and mutant.name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            program = _built(mutant, Path(directory))
            runs = [_finds(mutant, program, Path(directory), seed, arguments.cases) for seed in range(arguments.runs)]
        print(f"{mutant.name}: found by {mutant.found} in {sum(runs)} of {len(runs)} runs", flush=True)
        all_found &= sum(runs) * 2 > len(runs)
    return 0 if all_found else 1


if __name__ == "__main__":
    sys.exit(main())
