# SPDX-License-Identifier: BSD-2-Clause
"""Sys-E with its light search engine under a real monitor, for a few users."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.datasets import crowd
from loadgen.measuring.place import IMAGE, MANIFESTS, Place
from loadgen.stacks import launcher, light, manifests
from loadgen.stacks.ports import free_port
from loadgen.stacks.supervisor import Supervisor
from loadgen.tests.harness import ROOT
from testing.cluster import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.stacks.launcher import Launcher, Variant
    from loadgen.stacks.stack import Stack

USERS = 24


@contextlib.contextmanager
def running(
    variant: Variant = launcher.CONFINED,
    revocation: str = "lazy",
    beside: Sequence[str] = (),
    patch: Path | None = None,
) -> Iterator[tuple[Stack, Path]]:
    """Run a variant of the light stack, and tasks beside those that serve searches; yield it and its data."""
    with launched(revocation, patch) as (stacks, place):
        stack = stacks.launch(variant, ("127.0.0.1", free_port()))
        stack.analyze()
        stack.serve()
        for task in beside:
            stack.serve_beside(task)
        yield stack, place.data


@contextlib.contextmanager
def launched(revocation: str = "lazy", patch: Path | None = None) -> Iterator[tuple[Launcher, Place]]:
    """Yield a launcher of light stacks, whose pipeline is changed by a JSON patch, and the place of their data."""
    output = Path(tempfile.mkdtemp(prefix="shai-friends-"))
    output.chmod(0o755)  # tasks run as other users
    place = Place(ROOT / IMAGE, ROOT / MANIFESTS, output)
    try:
        with place.prepared(crowd.Crowd(USERS, hubs=2)), Supervisor() as supervisor:
            documents = light.derive(manifests.read(place.manifests), "syse")
            pipeline = manifests.find(documents, "syse")
            pipeline["spec"]["revocation"] = revocation
            if patch is not None:
                pipeline.update(patched(pipeline, patch, output))
            serving = (light.ENGINE, light.FRONT_END)
            with launcher.launching(place.site, documents, "syse", supervisor, serving) as stacks:
                yield stacks, place
    finally:
        shutil.rmtree(output)


def patched(pipeline: dict[str, Any], patch: Path, directory: Path) -> dict[str, Any]:
    """Return what kubectl makes of a pipeline with a JSON patch."""
    file = directory / "unpatched.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    where = ["--local", "-f", str(file), "--patch-file", str(patch)]
    made = subprocess.run(
        [PROGRAM, "kubectl", "patch", "--type", "json", "-o", "yaml", *where],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = yaml.safe_load(made.stdout)
    return found
