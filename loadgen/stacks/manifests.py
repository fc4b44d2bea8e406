# SPDX-License-Identifier: BSD-2-Clause
"""Variants of a pipeline, derived from the manifests in force, so that the two cannot differ by accident."""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from loadgen.driving.addresses import authority
from loadgen.errors import PublicError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

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


def connections(pipeline: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conduits by which users connect, by the task that serves them; their texts may have $(NAME).

    The first one is that of the search service, which gets the load.
    """
    found = {conduit["task"]: dict(conduit) for conduit in pipeline["spec"]["conduits"] if _serves(conduit)}
    if not found:
        name = pipeline["metadata"]["name"]
        raise ManifestError(f"pipeline {name}: no conduit of kind connection, so nothing to load")
    return found


def places(
    pipeline: dict[str, Any], address: tuple[str, int], another: Callable[[], int]
) -> dict[str, tuple[str, int]]:
    """Return where a variant of a pipeline listens, by task: the search service at ``address``.

    The others are at ports of their own beside it, which ``another`` chooses.
    """
    first, *others = connections(pipeline)
    return {first: address, **{task: (address[0], another()) for task in others}}


def facts(documents: Sequence[dict[str, Any]], conduit: str, relation: str) -> list[list[str]]:
    """Return the tuples of a relation that the manifests themselves hold."""
    sources = (entry["spec"].get("inline") or () for entry in documents if entry["kind"] == "FactSource")
    said = (one for source in sources for one in source if (one["conduit"], one["says"]) == (conduit, relation))
    return [list(map(str, found)) for one in said for found in one["tuples"]]


def derive(
    documents: Sequence[dict[str, Any]],
    pipeline: str,
    *,
    mode: str,
    listen: Mapping[str, tuple[str, int]],
    faults: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Copy manifests with one of their pipelines, in another mode, at other addresses and with faults.

    ``listen`` has the address of each task that serves users. They dial it, so there is no other service. ``faults``
    are values of variables. ``options`` are added to the command of the task that serves searches.
    """
    derived = copy.deepcopy(find(documents, pipeline))
    spec = derived["spec"]
    spec["mode"] = mode
    missing = faults.keys() - variables(derived).keys()
    if missing:
        raise ManifestError(f"pipeline {pipeline}: no variable {min(missing)}, so what has it cannot be broken")
    spec["variables"] = [
        {**variable, "value": faults[variable["name"]]} if variable["name"] in faults else variable
        for variable in spec.get("variables") or ()
    ]
    for conduit in filter(_serves, spec["conduits"]):
        conduit["listen"] = authority(listen[conduit["task"]])
        conduit.pop("service", None)
    others = [entry for entry in documents if entry["kind"] != "Pipeline"]
    if options:
        others = copy.deepcopy(others)
        find_task(others, next(iter(connections(derived))))["spec"]["command"] += options
    return [*others, derived]


def write(directory: Path, documents: Sequence[dict[str, Any]]) -> Path:
    """Write manifests to a file in a directory, which is made; return the file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "bundle.yaml"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    path.write_text(yaml.dump_all(documents, Dumper=dumper, sort_keys=False, allow_unicode=True))
    return path


def _serves(conduit: dict[str, Any]) -> bool:
    return bool(conduit["kind"] == "connection")


def _is_monitors(entry: dict[str, Any]) -> bool:
    return entry.get("apiVersion") == _API_VERSION and entry.get("kind") in _KINDS
