# SPDX-License-Identifier: BSD-2-Clause
"""Restores a backup into a cluster: the operator's Secret, Policies, JailPools, their revisions and releases.

The operator must not run meanwhile: it would decide about a Policy or a pool of which not everything is there yet.
Nothing that exists is replaced, so that a restoration that was cut off can be repeated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shai_operator.control import authority
from shai_operator.reconcile import bundles, restoring, shares
from shai_operator.reconcile.objects import Reference, name, namespace, reference, spec, status, uid
from shai_operator.reconcile.seals import ANNOTATION, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.restoring import Backup


class RestoreError(Exception):
    """A backup cannot be restored; nothing was changed. The text says why and what to do."""


@dataclass
class Restoration:
    """One restoration into the operator's ``namespace``; `run` carries it out, and may be run again."""

    cluster: Cluster
    namespace: str
    tell: Callable[[str], None]
    """Gets a line about each object."""
    reseal: bool = False
    """Whether to seal revisions anew that do not have the Secret's seal; their contents have to match their names."""
    left_out: int = 0
    """How many objects were left out."""
    _owners: dict[Reference, Object] = field(default_factory=dict)

    async def run(self, documents: Iterable[Object]) -> None:
        """Restore the objects of a backup; RestoreError or ClusterError when that is not possible."""
        backup = restoring.read(documents, authority.SECRET, self.namespace)
        seal = await self._authority(backup)
        fresh = [await self._owner(saved) for saved in (*backup.policies, *backup.pools)]
        for revision in backup.revisions:
            await self._revision(revision, seal)
        for release in backup.releases:
            await self._release(release)
        namespaces = await self._namespaces(backup)
        # Last: with its status, a pool that has all of its releases is as it was.
        for saved, is_fresh in zip((*backup.policies, *backup.pools), fresh, strict=True):
            if is_fresh:
                await self._status(saved, backup, namespaces)

    async def _authority(self, backup: Backup) -> Seal:
        present = await self.cluster.get(Reference("Secret", self.namespace, authority.SECRET))
        if present is not None and backup.secret is not None and present["data"] != backup.secret["data"]:
            raise RestoreError(
                f"Secret {authority.SECRET} in namespace {self.namespace} is another one than that of the backup, and "
                "members trust only one of them; delete it if nothing was installed with it, or leave the backup's out"
            )
        if present is None and backup.secret is not None:
            await self.cluster.create(restoring.unowned(backup.secret))
            self.tell(f"Secret {authority.SECRET}: restored")
        elif present is None and not self.reseal:
            raise RestoreError(
                f"neither the cluster nor the backup has the Secret {authority.SECRET}, without which no "
                "PolicyRevision can be verified. If it is lost, see docs/operations.md about --reseal"
            )
        root = await authority.load(self.cluster, self.namespace)
        return Seal(root.key.encode())

    async def _owner(self, saved: Object) -> bool:
        """Restore a Policy or a JailPool; return whether nobody has looked at it yet."""
        ref = reference(saved)
        present = await self.cluster.get(ref)
        if present is None:
            present = await self.cluster.create(restoring.unowned(saved))
            self.tell(f"{ref}: restored")
        elif status(present):
            self.tell(f"{ref}: exists and has a status; it stays as it is")
        if present is None:
            raise RestoreError(f"{ref} was made by somebody else just now; stop the operator, and restore again")
        self._owners[ref] = present
        return not status(present)

    async def _revision(self, saved: Object, seal: Seal) -> None:
        ref = reference(saved)
        owner = await self._find(Reference("Policy", namespace(saved), str(spec(saved).get("policy"))))
        if owner is None:
            self._leave_out(ref, "its Policy does not exist")
            return
        why = restoring.refusal(saved, seal)
        body = restoring.unowned(saved, owner)
        if self.reseal and restoring.may_be_sealed(saved):
            body, why = seal.put_on(body), ""
        if why:
            self._leave_out(ref, why)
        elif await self.cluster.create(body) is not None:
            self.tell(f"{ref}: restored")
        else:
            await self._existing_revision(ref, body)

    async def _existing_revision(self, ref: Reference, body: dict[str, Any]) -> None:
        present = await self.cluster.get(ref)
        wanted = body["metadata"]["annotations"][ANNOTATION]
        if present is None or spec(present) != body["spec"]:
            self._leave_out(ref, "another one of this name exists; delete it first")
        elif (present["metadata"].get("annotations") or {}).get(ANNOTATION) == wanted:
            self.tell(f"{ref}: exists")
        else:
            await self.cluster.set_annotation(present, ANNOTATION, wanted)
            self.tell(f"{ref}: sealed")

    async def _release(self, saved: Object) -> None:
        ref = reference(saved)
        try:
            bundles.load(saved)
        except bundles.ReleaseError as error:
            self._leave_out(ref, str(error))
            return
        owner = await self._find(Reference("JailPool", "", restoring.pool_of(saved)))
        if owner is None:
            self._leave_out(ref, "its JailPool does not exist")
            return
        made = await self.cluster.create(restoring.unowned(saved, owner))
        self.tell(f"{ref}: {'exists' if made is None else 'restored'}")

    async def _namespaces(self, backup: Backup) -> dict[str, str]:
        """Return the UIDs of namespaces by their former ones: the administrator says that they are the same."""
        found = {
            former: await self.cluster.get(Reference("Namespace", "", called))
            for former, called in backup.namespaces.items()
        }
        return {former: uid(present) for former, present in found.items() if present is not None}

    async def _status(self, saved: Object, backup: Backup, namespaces: Mapping[str, str]) -> None:
        for called in restoring.unknown_namespaces(saved, namespaces):
            self._leave_out(
                reference(saved),
                f"whose the members of namespace {called} are: the backup or the cluster does not have this namespace, "
                "so they keep their data and run nothing",
            )
        missing = shares.releases_named(saved) - {name(release) for release in backup.releases}
        if saved["kind"] == "JailPool" and missing:
            self._leave_out(
                reference(saved), f"its status, since the backup has no release {', '.join(sorted(missing))}"
            )
            return
        present = self._owners[reference(saved)]
        for part in restoring.statuses(saved, present, namespaces):
            await self.cluster.apply_status(part.obj, part.writer, part.status)

    async def _find(self, ref: Reference) -> Object | None:
        if ref not in self._owners:
            found = await self.cluster.get(ref)
            if found is None:
                return None
            self._owners[ref] = found
        return self._owners[ref]

    def _leave_out(self, ref: Reference, why: str) -> None:
        self.left_out += 1
        self.tell(f"{ref}: left out: {why}")


def documents(files: Iterable[Path]) -> list[Object]:
    """Read files that ``kubectl get -o json`` wrote; RestoreError when one cannot be read."""
    return [_document(file) for file in files]


def _document(file: Path) -> Object:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise RestoreError(f"{file} cannot be read: {error}; a backup is written by kubectl get -o json") from error
    if not isinstance(found, dict):
        raise RestoreError(f"{file} contains no Kubernetes object; a backup is written by kubectl get -o json")
    return found
