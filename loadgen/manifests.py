# SPDX-License-Identifier: BSD-2-Clause
"""Variants of the example pipeline, derived from its manifest so that they cannot drift from it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

NO_FAULT = "none"


class ManifestError(Exception):
    """The example pipeline is not what the demo derives its variants from."""


def read_pipeline(path: Path) -> dict[str, Any]:
    """Read the one Pipeline of a file."""
    try:
        documents = [entry for entry in yaml.safe_load_all(path.read_text()) if entry]
    except (OSError, yaml.YAMLError) as error:
        raise ManifestError(f"cannot read {path}: {error}") from error
    if len(documents) != 1 or documents[0].get("kind") != "Pipeline":
        raise ManifestError(f"{path}: expected one Pipeline, found {[entry.get('kind') for entry in documents]}")
    pipeline: dict[str, Any] = documents[0]
    return pipeline


def listening_address(pipeline: dict[str, Any]) -> tuple[str, int]:
    """Where the pipeline's front end listens."""
    for conduit in pipeline["spec"]["conduits"]:
        if conduit["kind"] == "connection":
            host, _, port = conduit["listen"].rpartition(":")
            return host, int(port)
    raise ManifestError(f"pipeline {pipeline['metadata']['name']}: no conduit of kind connection")


def derive(example: dict[str, Any], *, mode: str, listen: str, fault: str) -> dict[str, Any]:
    """Copy a pipeline with another mode, address and fault."""
    pipeline = copy.deepcopy(example)
    spec = pipeline["spec"]
    spec["mode"] = mode
    spec["variables"] = [
        {**variable, "value": fault} if variable["name"] == "FAULT" else variable for variable in spec["variables"]
    ]
    for conduit in spec["conduits"]:
        if conduit["kind"] == "connection":
            conduit["listen"] = listen
    return pipeline


def write(path: Path, pipeline: dict[str, Any]) -> None:
    """Write one manifest."""
    path.write_text(yaml.safe_dump(pipeline, sort_keys=False, allow_unicode=True))
