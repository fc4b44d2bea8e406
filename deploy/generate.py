# SPDX-License-Identifier: BSD-2-Clause
"""Writes the kustomization's manifests from the chart with its default values.

python -m deploy.generate [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crds import generated
from deploy.chart_rendering import by_template, render

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
_LICENCE = "# SPDX-License-Identifier: BSD-2-Clause\n"
_HEADING = f"{_LICENCE}# Written by python -m deploy.generate from deploy/chart; change it there.\n"
_IMAGE = "shai-operator"
_DIGEST = f"sha256:{'0' * 64}"
_APART = "templates/access.yaml"
"""It has the roles and admission policies of crds/access, which come with crds/ there."""

_RIGHTS = frozenset({"serviceaccount.yaml", "clusterrole.yaml", "role.yaml", "bindings.yaml"})
"""What an operator outside of the cluster needs, too."""


def files() -> dict[Path, str]:
    """Return the content of every generated file. A kustomization names the image with its digest (``images``)."""
    folder = ROOT / "deploy" / "operator"
    rendered = render(f"image: {{repository: {_IMAGE}, digest: '{_DIGEST}'}}").replace(f"{_IMAGE}@{_DIGEST}", _IMAGE)
    return {
        folder / ("rights" if Path(source).name in _RIGHTS else "") / Path(source).name: _HEADING
        + text.replace(_LICENCE, "").rstrip("\n")
        + "\n"
        for source, text in by_template(rendered).items()
        if source != _APART
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with --check print which of them are not up to date."""
    return generated.main(files(), "deploy/chart", "deploy.generate", __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
