# SPDX-License-Identifier: BSD-2-Clause
"""What members run: releases, facts, and bundles of both.

A *release* is the definitions of a pool at one moment (policies, tasks, pipelines). Its name follows from its content.
A ConfigMap keeps it, so that a rollback is possible. *Facts* (fact sources, principals) are not rolled out in steps. A
*bundle* is one release with the facts of the moment.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile.objects import API_VERSION, GROUP, name, owner_reference, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shai_operator.reconcile.objects import Object

Manifest = Mapping[str, Any]
"""An object stripped to what a monitor reads: apiVersion, kind, metadata.name, spec."""

RELEASE_PREFIX = "shai-release-"
POOL_LABEL = f"{GROUP}/pool"
DATA_KEY = "release.json.gz"
SIZE_LIMIT = 900 * 1024
"""Bytes of a compressed release; the API server takes a little over 1 MiB for a whole object."""

_DIGITS = 30
"""Digits of a hash in names and labels: enough that nobody can find two contents with the same digits."""
_FORMER_DIGITS = 12
"""Digits in the names that an earlier version of the operator gave to releases; these can still be read."""
_OPERATORS_OWN = {
    "Policy": ("rollout", "revisionHistoryLimit"),
    "Pipeline": ("rollout", "pool", "taskRuns"),
    "Principal": ("allowedNamespaces",),
}
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows in strings, but that YAML, as which monitors read the manifests, folds or refuses."""


class ReleaseError(Exception):
    """A release that cannot be stored or read; the text says what to do."""


def manifest(obj: Object) -> Manifest:
    """Reduce an object to what a monitor reads, without the fields that are only for the operator."""
    own = _OPERATORS_OWN.get(obj["kind"], ())
    return {
        "apiVersion": API_VERSION,
        "kind": obj["kind"],
        "metadata": {"name": name(obj)},
        "spec": {field: value for field, value in spec(obj).items() if field not in own},
    }


def dump(value: object) -> str:
    """Write a value as JSON that a YAML reader reads the same; everything that goes to a monitor is written so."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _sorted(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    return tuple(sorted(manifests, key=lambda manifest: (manifest["kind"], manifest["metadata"]["name"])))


@dataclass(frozen=True)
class Release:
    """The definitions of one pool at one moment. Make it with `release`."""

    pool: str
    namespace: str
    """The namespace whose pipelines the pool serves. It is part of the hash: releases of two namespaces differ even
    where their manifests do not."""
    manifests: tuple[Manifest, ...]
    """Sorted by kind and name."""
    revisions: Mapping[str, str]
    """The PolicyRevision of each policy in it, by the policy's name."""

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content, in lower-case hexadecimal."""
        content = dump({"pool": self.pool, "namespace": self.namespace, "manifests": self.manifests})
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def name(self) -> str:
        """The name of the ConfigMap that keeps it."""
        return RELEASE_PREFIX + self.hash[:_DIGITS]

    @cached_property
    def objects(self) -> Mapping[tuple[str, str], Manifest]:
        """The manifests by kind and name."""
        return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in self.manifests}

    def of_kind(self, kind: str) -> tuple[Manifest, ...]:
        """Return the manifests of one kind, by name."""
        return tuple(manifest for manifest in self.manifests if manifest["kind"] == kind)


def release(pool: str, namespace: str, manifests: Iterable[Manifest], revisions: Mapping[str, str]) -> Release:
    """Make a release of manifests in any order."""
    return Release(pool, namespace, _sorted(manifests), dict(sorted(revisions.items())))


def changed_policies(before: Release, after: Release) -> tuple[str, ...]:
    """Return the names of the policies that are new in ``after``, or have another revision there than in ``before``."""
    return tuple(
        policy for policy, revision in sorted(after.revisions.items()) if before.revisions.get(policy) != revision
    )


def withdraws(before: Release, after: Release) -> bool:
    """Whether ``after`` only removes manifests of ``before``, and adds and changes none."""
    return all(before.objects.get(key) == obj for key, obj in after.objects.items())


@dataclass(frozen=True)
class Facts:
    """Fact sources of a namespace and the principals that it knows. Make it with `facts`."""

    manifests: tuple[Manifest, ...]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content, in lower-case hexadecimal."""
        return hashlib.sha256(dump(self.manifests).encode()).hexdigest()


def facts(objects: Iterable[Object]) -> Facts:
    """Make facts of FactSources and Principals in any order."""
    return Facts(_sorted(manifest(obj) for obj in objects))


@dataclass(frozen=True)
class Bundle:
    """The release and the facts that a member has in force. A member swaps to a bundle as a whole."""

    release: Release
    facts: Facts

    @property
    def label(self) -> str:
        """The bundle's name, ``<release>.<facts>``, 30 hexadecimal digits each.

        Monitors keep it and show it in their status.
        """
        return f"{self.release.hash[:_DIGITS]}.{self.facts.hash[:_DIGITS]}"

    def sources(self) -> list[dict[str, str]]:
        """Return the body of a monitor's POST /v1/bundles: one source an object, so that errors name the object."""
        return [
            {"name": f"{manifest['kind']}/{manifest['metadata']['name']}", "text": dump(manifest)}
            for manifest in (*self.facts.manifests, *self.release.manifests)
        ]


def label_parts(label: str) -> tuple[str, str]:
    """Split a bundle's label into its release's name and its facts' digits; empty for labels of others."""
    release_digits, dot, facts_digits = label.partition(".")
    if not dot or not _is_digest(release_digits) or not _is_digest(facts_digits):
        return "", ""
    return RELEASE_PREFIX + release_digits, facts_digits


def _is_digest(text: str) -> bool:
    return re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", text) is not None


def store(kept: Release, owner: Object, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap that stores a release; ReleaseError when the release is too large.

    ``owner`` is the release's JailPool. The same release gives the same bytes.
    """
    body = {
        "pool": kept.pool,
        "namespace": kept.namespace,
        "manifests": kept.manifests,
        "revisions": kept.revisions,
    }
    packed = gzip.compress(dump(body).encode(), mtime=0)
    if len(packed) > SIZE_LIMIT:
        raise ReleaseError(
            f"the definitions of pool {kept.pool} are {len(packed) // 1024} KiB compressed, and {SIZE_LIMIT // 1024} "
            "KiB is the most that can be kept for going back to: move facts out of policies into FactSources with "
            "a file, and divide the pipelines among several pools"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": kept.name,
            "namespace": namespace,
            "labels": {POOL_LABEL: kept.pool},
            "ownerReferences": [owner_reference(owner)],
        },
        "immutable": True,
        "binaryData": {DATA_KEY: base64.b64encode(packed).decode()},
    }


def load(config_map: Object) -> Release:
    """Read a release from its ConfigMap; ReleaseError when the content does not match the name."""
    called = name(config_map)
    try:
        packed = base64.b64decode(config_map["binaryData"][DATA_KEY], validate=True)
        body = json.loads(gzip.decompress(packed))
        found = release(body["pool"], body["namespace"], body["manifests"], body["revisions"])
        whole = called in {found.name, RELEASE_PREFIX + found.hash[:_FORMER_DIGITS]}
    except (KeyError, TypeError, ValueError, AttributeError, OSError, EOFError, binascii.Error) as error:
        raise ReleaseError(
            f"ConfigMap {called} is not a release: {error!r}; delete it and the operator makes a new one"
        ) from error
    if not whole:
        raise ReleaseError(
            f"ConfigMap {called} holds another release, {found.name}; delete it and the operator makes a new one"
        )
    return found
