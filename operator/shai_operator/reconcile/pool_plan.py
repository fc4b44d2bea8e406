# SPDX-License-Identifier: BSD-2-Clause
"""What the reconciliation of a pool looks at, and what it may ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.reconcile import actions
from shai_operator.reconcile.members import (
    ApplyBundle,
    BringUp,
    ForgetMembers,
    Observation,
    Place,
    ProvisionMembers,
    RemoveMembers,
)
from shai_operator.reconcile.rollout_state import NeedComparison

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.reconcile.bundles import Release
    from shai_operator.reconcile.effects import Effect
    from shai_operator.reconcile.releases import Definitions


@dataclass(frozen=True)
class StoreRelease:
    """Keep a release as a ConfigMap (`bundles.store`) of the operator's namespace; that it is there already is fine."""

    release: Release


@dataclass(frozen=True)
class ForgetReleases:
    """Delete the ConfigMaps with the pool's label, except those named in ``keep``."""

    pool: str
    keep: frozenset[str]


PoolAction = (
    actions.Action
    | StoreRelease
    | ForgetReleases
    | ProvisionMembers
    | RemoveMembers
    | ForgetMembers
    | ApplyBundle
    | BringUp
    | NeedComparison
)


@dataclass
class PoolPlan:
    """Actions in the order in which they have to be carried out.

    Jobs (provision, remove, apply, bring up, compare) are only *begun* in this order, after all
    that has to be remembered has been written; none is asked for while the member has another.
    """

    actions: list[PoolAction] = field(default_factory=list)

    def add(self, *more: PoolAction) -> None:
        """Append actions."""
        self.actions.extend(more)


@dataclass(frozen=True)
class Observed:
    """All that is known of a pool besides its own object.

    What the operator itself last wrote to the pool's status has to be in ``pool`` when it decides
    again: an older status would have it repeat steps, though never harmfully.
    """

    definitions: Definitions
    releases: Mapping[str, Release]
    """The stored releases that the status names, by name; `releases_named` says which."""
    members: Mapping[str, Observation]
    """By name: the rows of the status (`observations`), completed with what is seen."""
    places: Mapping[int, Place]
    """Where each of the ordinals of `ordinals` is or is to be; those that fit nowhere are not in it."""
    too_few_hosts: str = ""
    """The provider's message when some fit nowhere."""
    configurations: Mapping[str, str] = field(default_factory=dict)
    """The digest that each member should be provisioned with, by name; a member not in it is left as it is."""
    configuration_error: tuple[str, str] | None = None
    """Reason (ImageMissing, PlaybookFailed) and message when the pool's configuration cannot be had."""
    effect: Effect | None = None
    """The last comparison."""
    comparison_refusals: Mapping[str, str] = field(default_factory=dict)
    """What the monitor said when it refused to compare a release, by the release's name."""
