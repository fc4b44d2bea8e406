# SPDX-License-Identifier: BSD-2-Clause
"""Renders the chart with Helm, whose version deploy/tools/go.mod pins."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).resolve().parent
CHART = FOLDER / "chart"
NAMESPACE = "shai-system"
KUBERNETES = "--kube-version=1.30.0"
"""The oldest version that the chart allows. Helm takes it for the cluster's when it asks none."""
_SOURCE = re.compile(r"^---\n# Source: shai/(\S+)\n", re.MULTILINE)
_BUILD_SECONDS = 3600
_SECONDS = 300


class HelmError(Exception):
    """Helm refuses the chart or its values; the text is what it says."""


@cache
def program() -> str:
    """Return the path of Helm, which is built when it is first used."""
    command = ["go", "-C", str(FOLDER / "tools"), "tool", "-n", "helm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS)
    if done.returncode != 0:
        raise HelmError(f"Helm cannot be built: {done.stderr}")
    return done.stdout.strip()


def helm(*arguments: str, stdin: str = "") -> str:
    """Run Helm and return its output; HelmError when it fails."""
    command = [program(), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode != 0:
        raise HelmError(f"helm {' '.join(arguments)}: {done.stderr.strip()}{done.stdout.strip()}")
    return done.stdout


def render(values: str) -> str:
    """Return the objects of the chart with these values (YAML), as Helm installs them in `NAMESPACE`."""
    return helm("template", "shai", str(CHART), "--namespace", NAMESPACE, KUBERNETES, "--values", "-", stdin=values)


def by_template(rendered: str) -> Mapping[str, str]:
    """Split rendered objects by their template, such as ``templates/role.yaml``."""
    found: dict[str, str] = {}
    _, *parts = _SOURCE.split(rendered)
    for source, text in zip(parts[::2], parts[1::2], strict=True):
        found[source] = f"{found[source]}---\n{text}" if source in found else text
    return found
