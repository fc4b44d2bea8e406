# SPDX-License-Identifier: BSD-2-Clause
"""Which definitions a pool is to run, out of all objects of the cluster.

A pipeline that cannot run as its spec says keeps running as the stable release has it: a typing
mistake must stop neither it nor the pipelines beside it. A mode that the pool no longer allows is
different: what runs in it is taken out before anything else, whatever the pipeline's spec says now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.reconcile import addresses, bundles, policies, references, tenancy
from shai_operator.reconcile.judging import Limits
from shai_operator.reconcile.objects import (
    API_VERSION,
    Inventory,
    created,
    deleting,
    name,
    namespace,
    reference,
    spec,
    uid,
)
from shai_operator.reconcile.rollout_state import Settings, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from shai_operator.reconcile.bundles import Facts, Manifest, Release
    from shai_operator.reconcile.conditions import Condition
    from shai_operator.reconcile.objects import Object, Reference


@dataclass(frozen=True)
class Definitions:
    """What a pool is to run."""

    pool: str
    namespace: str
    """Whose pipelines it serves. Empty when it serves nobody."""
    release: Release | None
    """None when there is nothing to run, and has never been."""
    facts: Facts
    pipelines: tuple[Object, ...] = ()
    """The pipelines in the release as their specs say, oldest first."""
    policies: tuple[Object, ...] = ()
    """The Policy objects of the policies in the release, by name."""
    left_out: Mapping[Reference, Condition] = field(default_factory=dict)
    """Pipelines that are not accepted. What the stable release has of them stays in the release."""
    held: tuple[str, ...] = ()
    """Policies whose newest revision has been rejected, so that an older one is in the release."""


def build(
    inventory: Inventory, pool: Object, refused: Mapping[Reference, Condition], stable: Release | None
) -> Definitions:
    """Gather a pool's definitions.

    ``refused`` are the pipelines that `definitions.refused` names, and no others can be left out;
    ``stable`` is the release in force, None when there is none yet. While that is another namespace's,
    nothing is to run: whoever has lost the pool is gone from it before the next one comes. While it has
    pipelines that are `forbidden`, only the rest of it is to run: a release that only leaves something out
    is not rolled out in steps, so that nothing in an author's spec can hold it back.
    """
    served = tenancy.served_namespace(pool, stable)
    leaving = stable is not None and stable.namespace != served and bool(stable.of_kind("Pipeline"))
    known = [] if leaving else inventory.all("Pipeline", served)
    own = [one for one in known if references.pool(one) == name(pool) and not deleting(one)]
    own.sort(key=lambda one: (created(one), uid(one)))
    chosen = [one for one in own if reference(one) not in refused]
    left_out = {reference(one): refused[reference(one)] for one in own if reference(one) in refused}
    present = _Gathered()
    if stable is not None and not leaving and forbidden(pool, stable):
        _carry(present, pool, stable, [name(one) for one in stable.of_kind("Pipeline")])
    else:
        for pipeline in chosen:
            present.add_pipeline(pipeline, inventory)
        if stable is not None and stable.namespace == served:
            _carry(present, pool, stable, [ref.name for ref in left_out])
    made = None
    if stable is not None or present.manifests:
        # A pool that has lost its last pipeline goes over to a release without any.
        space = stable.namespace if stable is not None and (leaving or not served) else served
        made = bundles.release(name(pool), space, present.manifests.values(), present.revisions)
    found = [inventory.find("Policy", served, one) for one in present.revisions]
    used = tuple(one for one in found if one is not None)
    return Definitions(
        pool=name(pool),
        namespace=served,
        release=made,
        facts=bundles.facts([*inventory.all("FactSource", served), *inventory.all("Principal")]),
        pipelines=tuple(chosen),
        policies=tuple(sorted(used, key=name)),
        left_out=left_out,
        held=tuple(sorted(name(one) for one in used if policies.is_held(one))),
    )


def forbidden(pool: Object, release: Release) -> frozenset[str]:
    """Return the pipelines of a release that a pool does not allow: their mode, that of a policy, or an address."""
    known = _inventory(release)
    wrong = [one for one in release.of_kind("Pipeline") if _refused(pool, one, known)]
    return frozenset(name(one) for one in wrong)


def settings(definitions: Definitions, changed: Iterable[str]) -> Settings:
    """Return how the definitions are to be rolled out when the policies ``changed`` change.

    Where pipelines or policies want different things, the most careful holds.
    """
    wanted = [spec(one).get("rollout") or {} for one in definitions.pipelines]
    among = set(changed)
    own = [spec(one).get("rollout") or {} for one in definitions.policies if name(one) in among]
    lists = [one["steps"] for one in own if one.get("steps")] or [one["steps"] for one in wanted if one.get("steps")]
    return Settings(
        steps=_steps(lists),
        limits=_limits([one.get("limits") or {} for one in wanted]),
        paused=any(one.get("paused") for one in wanted),
    )


@dataclass
class _Gathered:
    """Manifests by kind and name, with the revisions of the policies among them."""

    manifests: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)

    def add(self, one: Manifest) -> None:
        self.manifests[one["kind"], one["metadata"]["name"]] = one

    def add_pipeline(self, pipeline: Object, inventory: Inventory) -> None:
        """Add a pipeline with all that it names, which has to be there."""
        space = namespace(pipeline)
        self.add(bundles.manifest(pipeline))
        for task in references.tasks(pipeline):
            self.add(bundles.manifest(_there(inventory.find("Task", space, task))))
        for one in references.policies(pipeline, inventory):
            revision = _there(policies.effective_revision(_there(inventory.find("Policy", space, one)), inventory))
            self.revisions[one] = name(revision)
            content = {"text": spec(revision)["text"], "mode": policies.mode(revision)}
            self.add({"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": one}, "spec": content})


def _there(thing: Object | None) -> Object:
    if thing is None:
        raise LookupError("an object of a pipeline that was found complete is missing")
    return thing


def _carry(present: _Gathered, pool: Object, stable: Release, names: Iterable[str]) -> None:
    """Add what the stable release has of pipelines that cannot be replaced now, as far as the pool still allows it.

    What they share with pipelines that can is taken as those need it; should the two not go
    together any more, members refuse the release and the rollout ends there.
    """
    known = _inventory(stable)
    for pipeline in names:
        kept = known.find("Pipeline", "", pipeline)
        if kept is None or _refused(pool, kept, known):
            continue
        used = references.policies(kept, known)
        needed = [*(("Task", one) for one in references.tasks(kept)), *(("Policy", one) for one in used)]
        for key in [("Pipeline", pipeline), *needed]:
            if key not in present.manifests:
                present.add(stable.objects[key])
                if key[0] == "Policy":
                    present.revisions[key[1]] = stable.revisions[key[1]]


def _inventory(release: Release) -> Inventory:
    known = Inventory()
    for one in release.manifests:
        known.put(one)
    return known


def _refused(pool: Object, pipeline: Object, known: Inventory) -> bool:
    """Whether a pool does not allow a pipeline as a release has it, of which ``known`` is the inventory."""
    used = references.policies(pipeline, known)
    tried = [(one, policies.mode(_there(known.find("Policy", "", one)))) for one in used]
    return bool(tenancy.mode_refusal(pool, [references.mode(pipeline)], tried) or addresses.refusal(pool, pipeline))


def _steps(lists: Sequence[Sequence[Mapping[str, object]]]) -> tuple[Step, ...]:
    if not lists:
        return Settings().steps
    read = [tuple(_step(one) for one in steps) for steps in lists]
    of_hundred = [tuple(step.count(100) for step in steps) for steps in read]
    chosen = read[of_hundred.index(min(of_hundred))]
    if chosen[-1].members != "100%":
        chosen = (*chosen, Step("100%", chosen[-1].pause_seconds))
    return chosen


def _step(written: Mapping[str, object]) -> Step:
    pause = written.get("pauseSeconds")
    return Step(str(written["members"]), Step.pause_seconds if pause is None else int(str(pause)))


def _limits(wanted: Sequence[Mapping[str, int]]) -> Limits:
    usual = Limits()

    def among(key: str, default: int) -> list[int]:
        return [one.get(key, default) for one in wanted] or [default]

    return Limits(
        denials_percent=min(among("denialsPercent", usual.denials_percent)),
        overhead_percent=min(among("overheadPercent", usual.overhead_percent)),
        closed_percent=min(among("closedPercent", usual.closed_percent)),
        minimum_sessions=max(among("minimumSessions", usual.minimum_sessions)),
    )
