# SPDX-License-Identifier: BSD-2-Clause
"""Compare the table of the fields of thread and process, fields.txt, with the fields that releases have.

The lists of the releases are beside it (freebsd-*.txt, made by from_header.py). The exit status is 1 if a field is
missing in the table, is there twice, or is in no release.
"""

import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
TREATMENTS = {"saved", "refused", "constant", "call", "kernel"}


def table() -> Counter[str]:
    """Return how often the table has each field."""
    rows: Counter[str] = Counter()
    for line in (HERE / "fields.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        treatment, structure, fields, why = (part.strip() for part in line.split("|"))
        if treatment not in TREATMENTS or not why:
            raise SystemExit(f"fields.txt: {line}: no such treatment, or no reason")
        rows.update(f"{structure} {field}" for field in fields.split())
    return rows


def main() -> None:
    """Print what differs."""
    listed = table()
    present = {field for path in HERE.glob("freebsd-*.txt") for field in path.read_text().splitlines()}
    wrong = [f"{field}: nobody has decided on it" for field in sorted(present - set(listed))]
    wrong += [f"{field}: no release has it" for field in sorted(set(listed) - present)]
    wrong += [f"{field}: {count} times" for field, count in sorted(listed.items()) if count > 1]
    for line in wrong:
        print(f"fields.txt: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
