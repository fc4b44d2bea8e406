# SPDX-License-Identifier: BSD-2-Clause
"""Generates the definitions and the reference page from the schemas.

python -m crds.generate [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from crds import generated, kinds, reference

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
_HEADING = (
    "# SPDX-License-Identifier: BSD-2-Clause\n"
    "# Written by python -m crds.generate from crds/kinds; change it there.\n"
    "# A pattern cannot be broken into lines:\n"
    "# yamllint disable rule:line-length\n"
    "---\n"  # helm show crds prints one file after the other
)
_WIDTH = 110


class _Plain(yaml.SafeDumper):
    """Writes repeated values in full: a definition with anchors is hard to read."""

    def ignore_aliases(self, data: object) -> bool:
        """Never write an anchor."""
        del data
        return True


def files() -> dict[Path, str]:
    """Return the content of every generated file."""
    made = {
        ROOT / "crds" / "bases" / kind.file: _HEADING
        + yaml.dump(kind.definition(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=_WIDTH)
        for kind in kinds.ALL
    }
    made[ROOT / "docs" / "reference" / "resources.md"] = reference.page(kinds.ALL)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with --check print which of them are not up to date."""
    return generated.main(files(), "crds/kinds", "crds.generate", __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
