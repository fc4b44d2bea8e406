# SPDX-License-Identifier: BSD-2-Clause
"""What is restored from a backup of a cluster, and in which form.

A backup has objects as ``kubectl get -o json`` prints them. They cannot be created again as they are: the API server
takes no status with a new object, and its garbage collector deletes objects whose owners have an identifier of the
former cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import policies, pool_status, rollout_status
from shai_operator.reconcile.actions import SetStatus
from shai_operator.reconcile.bundles import POOL_LABEL
from shai_operator.reconcile.objects import deleting, name, namespace, owner_reference, status, uid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.seals import Seal

_KEPT = ("labels", "annotations")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_THE_POOL_BEFORE = frozenset({"observedGeneration", "conditions"})


@dataclass(frozen=True)
class Backup:
    """The objects of a backup that can be restored, in the order of their names."""

    secret: Object | None
    """The Secret with the operator's authority."""
    policies: tuple[Object, ...]
    pools: tuple[Object, ...]
    revisions: tuple[Object, ...]
    releases: tuple[Object, ...]
    namespaces: Mapping[str, str]
    """The names of the namespaces that the former cluster had, by UID."""


def read(documents: Iterable[Object], secret: str, operators: str) -> Backup:
    """Find in a backup what can be restored.

    ``documents`` are objects and lists of objects. ``secret`` is the name of the operator's Secret, ``operators`` its
    namespace. Objects that were being deleted are left out, and so are all other kinds: they are in a repository, and
    runs among them would begin once more.
    """
    found = [obj for document in documents for obj in _flat(document) if not deleting(obj)]
    here = [obj for obj in found if namespace(obj) == operators]

    def of_kind(kind: str, among: Iterable[Object] = found) -> tuple[Object, ...]:
        return tuple(sorted((obj for obj in among if obj["kind"] == kind), key=lambda obj: (namespace(obj), name(obj))))

    secrets = [obj for obj in of_kind("Secret", here) if name(obj) == secret]
    return Backup(
        secret=secrets[0] if secrets else None,
        policies=of_kind("Policy"),
        pools=of_kind("JailPool"),
        revisions=of_kind("PolicyRevision"),
        releases=tuple(obj for obj in of_kind("ConfigMap", here) if pool_of(obj)),
        namespaces={uid(obj): name(obj) for obj in of_kind("Namespace")},
    )


def pool_of(release: Object) -> str:
    """Return the JailPool of a stored release; empty for other ConfigMaps."""
    return str((release["metadata"].get("labels") or {}).get(POOL_LABEL, ""))


def unowned(saved: Object, owner: Object | None = None) -> dict[str, Any]:
    """Return an object as it can be created, with ``owner`` as its only owner.

    Finalizers are not kept: the operator adds its own.
    """
    metadata = saved["metadata"]
    kept = {key: dict(metadata[key]) for key in _KEPT if metadata.get(key)}
    kept.get("annotations", {}).pop(_LAST_APPLIED, None)
    owners = {"ownerReferences": [owner_reference(owner)]} if owner is not None else {}
    names = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    rest = {key: value for key, value in saved.items() if key not in ("metadata", "status")}
    return {**rest, "metadata": {**names, **kept, **owners}}


def refusal(revision: Object, seal: Seal) -> str:
    """Return why a revision does not count with this seal; empty when it does."""
    if policies.genuine(revision, seal):
        return ""
    if not policies.named_by_content(revision):
        return "its name and hash are not those of its content"
    return "it does not have the seal of the Secret: another operator made it, or somebody else"


def may_be_sealed(revision: Object) -> bool:
    """Whether a revision is bound to its content by its name, so that it can bring no other text into force.

    The short names of an earlier version do not do that well enough.
    """
    return policies.named_by_content(revision) and len(name(revision).rpartition("-")[2]) == policies.HASH_DIGITS


def unknown_namespaces(saved: Object, present: Mapping[str, str]) -> list[str]:
    """Return the names of the namespaces of a JailPool's members of which ``present`` does not have the former UID."""
    rows = status(saved).get("members") or ()
    return sorted({str(row["namespace"]) for row in rows if row.get("namespace") and _former(row) not in present})


def _former(row: Mapping[str, Any]) -> str:
    return str(row.get("namespaceUID") or "")


def statuses(saved: Object, present: Object, namespaces: Mapping[str, str]) -> Iterator[SetStatus]:
    """Yield the parts of a status that the operator cannot find out again, as written by their writers.

    ``namespaces`` are the present UIDs of namespaces by their former ones, for members, which belong to namespaces. A
    member whose namespace is not among them belongs to none that there is, and runs nothing.

    Of a Policy they are its revisions: without them, a text that was rolled back would be rolled out again. Of a
    JailPool they are its releases, its members and its rollout. Conditions are about the former object.
    """
    known = status(saved)
    if saved["kind"] == "Policy":
        yield SetStatus(present, policies.WRITER, _those(known, policies.NUMBERED))
        yield SetStatus(present, rollout_status.WRITER, _those(known, rollout_status.REVISIONS))
    else:
        kept = {key: known[key] for key in known if key not in _OF_THE_POOL_BEFORE}
        yield SetStatus(present, pool_status.WRITER, _moved(kept, namespaces))


def _moved(known: dict[str, Any], namespaces: Mapping[str, str]) -> dict[str, Any]:
    """Replace the UIDs of namespaces in a JailPool's status."""
    for field, key in (("members", "namespaceUID"), ("namespaces", "uid")):
        if field in known:
            known[field] = [
                row | {key: namespaces.get(row[key], row[key])} if key in row else row for row in known[field]
            ]
    return known


def _those(known: Object, fields: Iterable[str]) -> dict[str, Any]:
    return {field: known[field] for field in fields if known.get(field)}


def _flat(document: Object) -> Iterator[Object]:
    if str(document.get("kind", "")).endswith("List"):
        for item in document.get("items") or ():
            yield from _flat(item)
    elif document.get("kind") and document.get("metadata"):
        yield document
