# SPDX-License-Identifier: BSD-2-Clause
"""Which namespace each member of a pool belongs to, and which members are given up with their data.

A monitor has one set of paths, users and stores, so a member serves one namespace. It belongs to it until it is
removed: what comes into force there, and what tasks write, is of this namespace. A new member is free until it is
assigned. The status has the assignment before anything of the namespace gets to the member, and the API server refuses
to change it there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from shai_operator.reconcile import tenants
from shai_operator.reconcile.actions import SetAnnotation
from shai_operator.reconcile.bundles import label_parts
from shai_operator.reconcile.enforcement import empty_bundle
from shai_operator.reconcile.objects import name, status
from shai_operator.reconcile.tenancy import DISCARD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object
    from shai_operator.reconcile.tenancy import Claim
    from shai_operator.reconcile.tenants import Tenant


def assigned(
    pool: Object, staying: Sequence[Observation], claims: Sequence[Claim], placed: Collection[int]
) -> list[Observation]:
    """Assign free members that have a place: one after the other to the namespace that has the fewest.

    Among namespaces with equally many, those that use the pool come first, then the order of ``claims`` counts. What a
    namespace gets that does not use the pool yet stays free. A member whose row in the status still names a former
    owner waits until the row is written without it.
    """
    named = {row["name"] for row in status(pool).get("members") or () if tenants.of_row(row) != tenants.NOBODY}
    counts = Counter(member.tenant for member in staying)
    order = {claim.tenant: (not claim.active, number) for number, claim in enumerate(claims)}
    found = list(staying)
    for number, member in enumerate(found):
        if member.tenant != tenants.NOBODY or member.withdrawn or member.ordinal not in placed or not claims:
            continue
        best = min(claims, key=lambda claim: (counts[claim.tenant], *order[claim.tenant]))
        counts[best.tenant] += 1
        if best.active and member.name not in named:
            found[number] = replace(member, tenant=best.tenant)
    return found


def judged(
    pool: Object, known: Iterable[Observation], releases: Mapping[Tenant, Collection[str]]
) -> dict[str, Observation]:
    """Return members by name; those that have a bundle of which the status knows nothing are not used.

    Such a member has data of a namespace that nobody remembers: the status was lost, as with a JailPool that was
    restored from a backup, or the member was left on a host that has come back. ``releases`` are those that each
    namespace runs, by which a member is known to be its own.
    """
    return {member.name: _judged(pool, member, releases.get(member.tenant, ())) for member in known}


def _judged(pool: Object, member: Observation, releases: Collection[str]) -> Observation:
    has, own = member.monitor.bundle if member.monitor else "", set(releases)
    if member.insufficient:
        own.add(empty_bundle(pool).release.name)  # a new one has got this, because it is not to be used
    if member.withdrawn or member.bundle or not has or label_parts(has)[0] in own:
        return member
    why = "it has data of which the status of the pool does not say whose they are, and runs nothing"
    remedy = f"kubectl annotate --overwrite jailpool {name(pool)} {DISCARD}={member.tenant.name}"
    if member.tenant == tenants.NOBODY:
        remedy = "lower spec.replicas"
    return replace(member, foreign=True, withdrawn=f"{why}: delete it with its data: {remedy}")


def discarded(pool: Object, known: Iterable[Observation]) -> frozenset[int]:
    """Return the ordinals of the members that the pool's annotation gives up with their data.

    They run nothing, as those of namespaces that may not use the pool any more: data in use are not given up by
    mistake.
    """
    asked = _named(pool)
    return frozenset(member.ordinal for member in known if member.withdrawn and member.tenant.name in asked)


def forget(pool: Object, known: Iterable[Observation]) -> Iterator[SetAnnotation]:
    """Yield the change of the annotation that takes out of it what is done, and what has no member to give up.

    A namespace that may not use the pool some time later is not meant.
    """
    asked = _named(pool)
    meant = {member.tenant.name for member in known if member.withdrawn}
    left = [called for called in asked if called in meant]
    if left != asked:
        yield SetAnnotation(pool, DISCARD, ",".join(left))


def _named(pool: Object) -> list[str]:
    annotation = str((pool["metadata"].get("annotations") or {}).get(DISCARD) or "")
    return [part for part in map(str.strip, annotation.split(",")) if part]
