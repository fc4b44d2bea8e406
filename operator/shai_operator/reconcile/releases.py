# SPDX-License-Identifier: BSD-2-Clause
"""Chooses the definitions that a namespace runs on its share of a pool.

A pipeline that cannot run as its spec says keeps running as in the release in force: a typing mistake must stop neither
it nor the pipelines beside it. A mode that the pool no longer allows, or a runtime that it no longer gives, is
different: a pipeline that runs with it is taken out before anything else, whatever its spec says now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shai_operator.reconcile import addresses, bundles, choices, policies, references, sources, tenancy
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
    from shai_operator.reconcile.shares import Share


@dataclass(frozen=True)
class Definitions:
    """The definitions that a namespace runs on its share of a pool."""

    namespace: str
    release: Release | None
    """The release to run; None when the share has, and had, none."""
    facts: Facts
    incomplete: bool = False
    """Whether facts are missing, because the pool does not allow their source: no pipeline may run with the others."""
    pipelines: tuple[Object, ...] = ()
    """The pipelines in the release, with their present specs, oldest first."""
    policies: tuple[Object, ...] = ()
    """The Policy objects of the policies in the release, by name."""
    left_out: Mapping[Reference, Condition] = field(default_factory=dict)
    """Pipelines that are not accepted. If they are in the release in force, they stay in the new release unchanged."""
    held: tuple[str, ...] = ()
    """Policies whose newest revision has been rejected, so that an older one is in the release."""


def build(
    inventory: Inventory, share: Share, refused: Mapping[Reference, Condition] | None, stored: Mapping[str, Release]
) -> Definitions:
    """Build the definitions for a share of a pool, whose namespace the pool allows.

    ``refused`` are the pipelines that `definitions.refused` returns; only these can be left out. ``stored`` are the
    releases that the pool's status names. While the share is `withdrawing` something, or ``refused`` is None, the new
    release is what the pool allows of the release in force. While the pool does not allow a source of facts, the new
    release is empty. Such releases only remove something, so they are not rolled out in steps: nothing in an author's
    spec can delay them.
    """
    pool, space, running = share.pool, share.tenant.name, in_force(share, stored)
    known = inventory.all("Pipeline", space)
    own = [pipeline for pipeline in known if references.pool(pipeline) == name(pool) and not deleting(pipeline)]
    own.sort(key=lambda pipeline: (created(pipeline), uid(pipeline)))
    problems = refused or {}
    chosen = [pipeline for pipeline in own if reference(pipeline) not in problems]
    left_out = {ref: problems[ref] for ref in map(reference, own) if ref in problems}
    present = _Gathered()
    frozen = refused is None or withdrawing(share, stored)
    incomplete = bool(sources.refusals(pool, inventory, space))
    for pipeline in () if frozen or incomplete else chosen:
        present.add_pipeline(pipeline, inventory)
    if running is not None and running.namespace == space and not incomplete:
        names = map(name, running.of_kind("Pipeline")) if frozen else (ref.name for ref in left_out)
        _carry(present, share, running, names)
    made = None
    if running is not None or present.manifests or _begun(share):
        # A namespace that has lost its last pipeline gets a release without pipelines, even during its first rollout.
        made = bundles.release(name(pool), space, present.manifests.values(), present.revisions)
    found = [inventory.find("Policy", space, policy) for policy in present.revisions]
    used = tuple(policy for policy in found if policy is not None)
    return Definitions(
        namespace=space,
        release=made,
        facts=facts(pool, inventory, space),
        incomplete=incomplete,
        pipelines=tuple(chosen),
        policies=tuple(sorted(used, key=name)),
        left_out=left_out,
        held=tuple(sorted(name(policy) for policy in used if policies.is_held(policy))),
    )


def facts(pool: Object, inventory: Inventory, space: str) -> Facts:
    """Return the facts that a pool's members get for a namespace: the sources that the pool allows, and principals."""
    refused = sources.refusals(pool, inventory, space)
    allowed = [source for source in inventory.all("FactSource", space) if reference(source) not in refused]
    return bundles.facts([*allowed, *tenancy.principals(inventory, space)])


def in_force(share: Share, stored: Mapping[str, Release]) -> Release | None:
    """Return the stable release or, before there is one, the candidate, which all members get at once."""
    return stored.get(share.stable or share.candidate)


def holds(release: Release, pipeline: Object, inventory: Inventory) -> bool:
    """Whether a release has a pipeline, and all that it names, as their specs say now."""
    tasks = list(references.existing_tasks(pipeline, inventory))
    wanted = [bundles.manifest(obj) for obj in (pipeline, *tasks)]
    if len(tasks) != len(set(references.tasks(pipeline))):
        return False
    if any(release.objects.get((obj["kind"], name(obj))) != obj for obj in wanted):
        return False
    for called in references.policies(pipeline, inventory):
        held = release.objects.get(("Policy", called))
        policy = inventory.find("Policy", namespace(pipeline), called)
        if held is None or policy is None or policies.content_hash(held) != policies.content_hash(policy):
            return False
    return True


def withdrawing(share: Share, stored: Mapping[str, Release]) -> bool:
    """Whether members may run something that the pool does not allow: in the stable release or in a candidate."""
    named = {share.stable, share.candidate, share.state.superseded}
    return any(called in named and forbidden(share, release) for called, release in stored.items())


def _begun(share: Share) -> bool:
    """Whether a share without a stable release has a first one under way, or members that run one."""
    return not share.stable and bool(share.candidate or share.running)


def forbidden(share: Share, release: Release) -> frozenset[str]:
    """Return the pipelines of a release that a pool does not allow.

    The cause is the namespace, a mode, a runtime, an address, choices, a store, or a policy that the release lacks.
    """
    pipelines = release.of_kind("Pipeline")
    if release.namespace == share.tenant.name:
        known = _inventory(release)
        pipelines = tuple(pipeline for pipeline in pipelines if _refused(share, pipeline, known))
    return frozenset(name(pipeline) for pipeline in pipelines)


def settings(definitions: Definitions, changed: Iterable[str]) -> Settings:
    """Return how to roll the definitions out when the policies ``changed`` change.

    Where pipelines or policies have different settings, the most careful ones apply.
    """
    wanted = [spec(pipeline).get("rollout") or {} for pipeline in definitions.pipelines]
    among = set(changed)
    own = [spec(policy).get("rollout") or {} for policy in definitions.policies if name(policy) in among]
    lists = [rollout["steps"] for rollout in own if rollout.get("steps")] or [
        rollout["steps"] for rollout in wanted if rollout.get("steps")
    ]
    return Settings(
        steps=_steps(lists),
        limits=_limits([rollout.get("limits") or {} for rollout in wanted]),
        paused=any(rollout.get("paused") for rollout in wanted),
    )


@dataclass
class _Gathered:
    """Collected manifests by kind and name, with the revisions of the policies among them."""

    manifests: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)

    def add(self, manifest: Manifest) -> None:
        self.manifests[manifest["kind"], manifest["metadata"]["name"]] = manifest

    def add_pipeline(self, pipeline: Object, inventory: Inventory) -> None:
        """Add a pipeline with all objects that it names, which have to exist."""
        space = namespace(pipeline)
        self.add(bundles.manifest(pipeline))
        for task in references.tasks(pipeline):
            self.add(bundles.manifest(_existing(inventory.find("Task", space, task))))
        for policy in references.policies(pipeline, inventory):
            revision = _existing(
                policies.effective_revision(_existing(inventory.find("Policy", space, policy)), inventory)
            )
            self.revisions[policy] = name(revision)
            content = {"text": spec(revision)["text"], "mode": policies.mode(revision)}
            self.add({"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": policy}, "spec": content})


def _existing(obj: Object | None) -> Object:
    if obj is None:
        raise LookupError("an object of a pipeline that was found complete is missing")
    return obj


def _carry(present: _Gathered, share: Share, running: Release, names: Iterable[str]) -> None:
    """Add pipelines that cannot be replaced now as the release in force has them, as far as the pool still allows them.

    A task or policy that they share with an accepted pipeline is taken in the version that the accepted pipeline needs.
    If this does not fit together, members refuse the release, and the rollout ends there.
    """
    known = _inventory(running)
    for pipeline in names:
        kept = known.find("Pipeline", "", pipeline)
        if kept is None or _refused(share, kept, known):
            continue
        used = references.policies(kept, known)
        needed = [*(("Task", task) for task in references.tasks(kept)), *(("Policy", policy) for policy in used)]
        for key in [("Pipeline", pipeline), *needed]:
            if key not in present.manifests:
                present.add(running.objects[key])
                if key[0] == "Policy":
                    present.revisions[key[1]] = running.revisions[key[1]]


def _inventory(release: Release) -> Inventory:
    known = Inventory()
    for manifest in release.manifests:
        known.put(manifest)
    return known


def _refused(share: Share, pipeline: Object, known: Inventory) -> bool:
    """Whether a pool does not allow a pipeline of a release; ``known`` is the release's inventory."""
    used = {policy: known.find("Policy", "", policy) for policy in references.policies(pipeline, known)}
    tried = [(policy, policies.mode(found)) for policy, found in used.items() if found is not None]
    # No monitor runs a pipeline without a policy that it names. An earlier version of the operator did not count all.
    return bool(
        len(tried) < len(used)
        or tenancy.mode_refusal(share.pool, [references.mode(pipeline)], tried)
        or tenancy.runtime_refusal(share.pool, references.existing_tasks(pipeline, known))
        or addresses.refusal(share.pool, share.tenant, pipeline)
        or choices.refusal(share.pool, share.tenant, pipeline)
        or sources.store_refusal(share.pool, pipeline)
    )


def _steps(lists: Sequence[Sequence[Mapping[str, object]]]) -> tuple[Step, ...]:
    if not lists:
        return Settings().steps
    read = [tuple(_step(step) for step in steps) for steps in lists]
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
        return [rollout.get(key, default) for rollout in wanted] or [default]

    return Limits(
        denials_percent=min(among("denialsPercent", usual.denials_percent)),
        overhead_percent=min(among("overheadPercent", usual.overhead_percent)),
        closed_percent=min(among("closedPercent", usual.closed_percent)),
        minimum_sessions=max(among("minimumSessions", usual.minimum_sessions)),
    )
