# SPDX-License-Identifier: BSD-2-Clause
"""The input and the output of a pool's reconciliation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.reconcile import actions
from shai_operator.reconcile.machines import Replacements
from shai_operator.reconcile.members import (
    ApplyBundle,
    BringUp,
    ForgetMembers,
    Observation,
    Place,
    ProvisionMembers,
    RemoveMembers,
)
from shai_operator.reconcile.orphans import RemoveOrphans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.bundles import Bundle, Release
    from shai_operator.reconcile.effects import Effect
    from shai_operator.reconcile.releases import Definitions
    from shai_operator.reconcile.rollout_state import Tracks
    from shai_operator.reconcile.shares import Share
    from shai_operator.reconcile.surveys import HostSurvey
    from shai_operator.reconcile.tenants import Tenant


@dataclass(frozen=True)
class StoreRelease:
    """Store a release as a ConfigMap (`bundles.store`) in the operator's namespace, unless it is stored already."""

    release: Release


@dataclass(frozen=True)
class ForgetReleases:
    """Delete the ConfigMaps with the pool's label, except those named in ``keep``."""

    pool: str
    keep: frozenset[str]


@dataclass(frozen=True)
class CompareBundles:
    """Have the monitor of a namespace's member compare a bundle with its release in force, as a job."""

    namespace: str
    member: str
    before: str
    """Name of the release in force."""
    bundle: Bundle


PoolAction = (
    actions.Action
    | StoreRelease
    | ForgetReleases
    | ProvisionMembers
    | RemoveMembers
    | ForgetMembers
    | ApplyBundle
    | BringUp
    | CompareBundles
    | RemoveOrphans
)


@dataclass
class PoolPlan:
    """Actions in the order in which they have to be carried out.

    Jobs (provision, remove, apply, bring up, compare) are only *started* in this order, after everything that has to be
    remembered has been written. No job is requested for a member that already has one.
    """

    actions: list[PoolAction] = field(default_factory=list)
    tracks: dict[str, Tracks] = field(default_factory=dict)
    """By namespace: the figures of the step of a rollout that is watched."""

    def add(self, *more: PoolAction) -> None:
        """Append actions."""
        self.actions.extend(more)


@dataclass(frozen=True)
class Observed:
    """All that is known of a pool besides its own object.

    When the operator decides again, ``pool`` has to contain the status that it wrote last. With an older status it
    would repeat steps, which is harmless.
    """

    shares: Mapping[Tenant, Share]
    """The shares of the namespaces that the pool serves (`tenancy.served`)."""
    definitions: Mapping[Tenant, Definitions]
    """What each of them is to run. One that is missing here is not known yet: its members stay as they are."""
    releases: Mapping[str, Release]
    """The stored releases that the status names, by name; `releases_needed` says which."""
    members: Mapping[str, Observation]
    """Members by name: the rows of the status (`observations`), completed with observations."""
    places: Mapping[int, Place]
    """The place of each ordinal of `ordinals`; ordinals that fit nowhere are left out."""
    unplaced: tuple[str, str] | None = None
    """Reason and message of the provider when not all members have a place."""
    surveys: Mapping[str, HostSurvey] = field(default_factory=dict)
    """The last survey of each host that is not gone, by name; empty for providers that make none."""
    replacements: Replacements = field(default_factory=Replacements)
    """The decision about virtual machines with which the ordinals were chosen."""
    configurations: Mapping[str, str] = field(default_factory=dict)
    """The digest with which each member should be provisioned, by name. A member without an entry is left as it is."""
    configuration_error: tuple[str, str] | None = None
    """Reason (ImageMissing, PlaybookFailed) and message when the pool's configuration is not available."""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    """The last comparison of each namespace."""
    comparison_refusals: Mapping[str, str] = field(default_factory=dict)
    """The monitor's message when it refused to compare a release, by the release's name."""
