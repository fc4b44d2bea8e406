# SPDX-License-Identifier: BSD-2-Clause
"""Variants of a pipeline, derived from the manifests in force, so that the two cannot differ by accident."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.errors import PublicError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NO_FAULT = "none"
_API_VERSION = "shai.dev/v1alpha1"
_KINDS = frozenset({"Policy", "FactSource", "Principal", "Task", "Pipeline"})
"""The kinds that a monitor reads; manifests only for the operator may be in the same files."""


class ManifestError(PublicError):
    """Variants cannot be derived from these manifests; the text names the file or the pipeline."""


def read(directory: Path) -> list[dict[str, Any]]:
    """Read the monitor's objects from the files of a directory, in the order of the files' names."""
    paths = sorted(path for pattern in ("*.yaml", "*.yml", "*.json") for path in directory.glob(pattern))
    found = []
    for path in paths:
        try:
            # The C loader if there is one, because a bundle can have many thousands of lines.
            documents = list(yaml.load_all(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            raise ManifestError(f"cannot read {path}: {error}") from error
        found += [entry for entry in documents if isinstance(entry, dict) and _is_monitors(entry)]
    if not found:
        raise ManifestError(f"{directory}: no manifests there")
    return found


def find(documents: Sequence[dict[str, Any]], pipeline: str) -> dict[str, Any]:
    """Return a pipeline's manifest."""
    pipelines = [entry for entry in documents if entry["kind"] == "Pipeline"]
    for entry in pipelines:
        if entry["metadata"]["name"] == pipeline:
            return entry
    names = ", ".join(entry["metadata"]["name"] for entry in pipelines) or "none"
    raise ManifestError(f"no manifest of pipeline {pipeline}; there are {names}")


def find_task(documents: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return a task's manifest."""
    for entry in documents:
        if entry["kind"] == "Task" and entry["metadata"]["name"] == name:
            return entry
    raise ManifestError(f"no manifest of task {name}")


def serving(documents: Sequence[dict[str, Any]], pipeline: str) -> tuple[str, ...]:
    """Return the tasks of a pipeline that always run, in the order of its manifest: the order in which they start.

    A task that writes a directory is left out: variants share their data, and one of them has such a task already.
    """
    spec = find(documents, pipeline)["spec"]
    directories = {conduit["name"] for conduit in spec["conduits"] if conduit.get("directory")}
    tasks = {name: find_task(documents, name)["spec"] for name in spec["tasks"]}
    return tuple(
        name
        for name, task in tasks.items()
        if task.get("run", "Always") == "Always" and directories.isdisjoint(task.get("writes") or ())
    )


def variables(pipeline: dict[str, Any]) -> dict[str, str]:
    """Return the values that a pipeline gives to $(NAME) itself."""
    return {entry["name"]: str(entry.get("value") or "") for entry in pipeline["spec"].get("variables") or ()}


def connection(pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return the conduit by which users connect; its texts may have $(NAME)."""
    for conduit in pipeline["spec"]["conduits"]:
        if conduit["kind"] == "connection":
            return dict(conduit)
    raise ManifestError(f"pipeline {pipeline['metadata']['name']}: no conduit of kind connection, so nothing to load")


def derive(
    documents: Sequence[dict[str, Any]],
    pipeline: str,
    *,
    mode: str,
    listen: str,
    fault: str,
    options: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Copy manifests with one of their pipelines, in another mode, at another address and with a fault.

    Its users dial the address, so it has no other service. ``options`` are added to the command of the task that
    serves connections.
    """
    derived = copy.deepcopy(find(documents, pipeline))
    spec = derived["spec"]
    spec["mode"] = mode
    spec["variables"] = [
        {**variable, "value": fault} if variable["name"] == "FAULT" else variable
        for variable in spec.get("variables") or ()
    ]
    if fault != NO_FAULT and not any(variable["name"] == "FAULT" for variable in spec["variables"]):
        raise ManifestError(f"pipeline {pipeline}: no variable FAULT, so its search engine cannot be broken")
    for conduit in spec["conduits"]:
        if conduit["kind"] == "connection":
            conduit["listen"] = listen
            conduit.pop("service", None)
    others = [entry for entry in documents if entry["kind"] != "Pipeline"]
    if options:
        others = copy.deepcopy(others)
        front_end = next(conduit["task"] for conduit in spec["conduits"] if conduit["kind"] == "connection")
        find_task(others, front_end)["spec"]["command"] += options
    return [*others, derived]


def write(directory: Path, documents: Sequence[dict[str, Any]]) -> Path:
    """Write manifests to a file in a directory, which is made; return the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "bundle.yaml"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    path.write_text(yaml.dump_all(documents, Dumper=dumper, sort_keys=False, allow_unicode=True))
    return path


def _is_monitors(entry: dict[str, Any]) -> bool:
    return entry.get("apiVersion") == _API_VERSION and entry.get("kind") in _KINDS
