# SPDX-License-Identifier: BSD-2-Clause
"""A simulated world for a pool: the API server's objects, stored releases, and members.

It carries plans out like the control layer, action by action, and can stop after any of them, which simulates a crash
of the operator.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from shai_operator.reconcile import bundles, members, policies, pools, releases, shares, tenancy
from shai_operator.reconcile.actions import Emit, Requeue, SetAnnotation, SetFinalizer, SetStatus
from shai_operator.reconcile.effects import Effect
from shai_operator.reconcile.machines import Replacements
from shai_operator.reconcile.members import (
    ApplyBundle,
    BringUp,
    Failure,
    ForgetMembers,
    Monitor,
    Observation,
    Place,
    ProvisionMembers,
    RemoveMembers,
    Sample,
)
from shai_operator.reconcile.objects import (
    FINALIZER,
    Inventory,
    Object,
    Reference,
    generation,
    name,
    reference,
    spec,
    uid,
)
from shai_operator.reconcile.pools import CompareBundles, ForgetReleases, Observed, StoreRelease
from shai_operator.reconcile.tenants import Tenant
from tests.reconcile import builders
from tests.reconcile.builders import FOR_SEARCH, genuine, refused, resource

if TYPE_CHECKING:
    from shai_operator.reconcile.bundles import Bundle, Release
    from shai_operator.reconcile.conditions import Condition
    from shai_operator.reconcile.pools import PoolPlan

POOL = Reference("JailPool", "", "default")


@dataclass
class Machine:
    """The real state of a member on its host."""

    host: str
    configuration: str
    runtimes: frozenset[str] = frozenset()
    bundle: Bundle | None = None
    written: set[Tenant] = field(default_factory=set)
    """The namespaces whose tasks have written data here."""
    alive: bool = True
    tasks: dict[tuple[str, str], str] = field(default_factory=dict)
    sessions: int = 0
    counters: tuple[int, int, int, int] = (0, 0, 0, 0)
    samples: tuple[Sample, ...] = ()
    refused: dict[str, Failure] = field(default_factory=dict)
    failures: int = 0


class World:
    """One pool named ``default``, with one pipeline in namespace search."""

    def __init__(self, replicas: int = 3, **spec: Any) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)
        self.owned: dict[tuple[Reference, str], set[str]] = {}
        """The fields of a status that each writer owns."""
        self.known = Inventory(genuine)
        self.stored: dict[str, Release] = {}
        self.machines: dict[str, Machine] = {}
        self.effects: dict[str, Effect] = {}
        self.digest = "c1"
        self.hosts: tuple[str, ...] = ("h1",)
        self.unreachable: set[str] = set()
        self.closed = 0
        self.refuses: set[str] = set()
        """Policy texts, and names of sources of facts, that monitors refuse."""
        self.away: set[str] = set()
        """Names of sources of facts that do not answer monitors."""
        self.denies: set[str] = set()
        """Policy texts under which half of the decisions are denials."""
        self.unchecked: set[str] = set()
        """Namespaces of pipelines about which the parser has not yet answered."""
        self.harmful: set[str] = set()
        """Releases with which half of the decisions are denials."""
        self.events: list[Emit] = []
        self.trail: list[Any] = []
        """All actions that have been carried out."""
        steps = [{"members": 1, "pauseSeconds": 20}, {"members": "100%", "pauseSeconds": 20}]
        self._specs: dict[str, Any] = {}
        self.known.put(builders.space("search"))
        self.put(resource("JailPool", "default", {"replicas": replicas, "directory": "/srv", **FOR_SEARCH, **spec}))
        self.put(resource("Task", "search", {"run": "Always"}))
        self.define("one")
        paths = [{"path": "/a/**", "policy": {"name": "public"}}]
        self.put(
            resource(
                "Pipeline",
                "syse",
                {
                    "tasks": ["search"],
                    "conduits": [{"name": "documents", "kind": "file", "paths": paths}],
                    "rollout": {"steps": steps, "limits": {"minimumSessions": 5}},
                },
            )
        )

        self._specs = {kind: self.known.all(kind)[0]["spec"] for kind in ("Task", "Pipeline")}

    # Actions of people.

    def put(self, obj: Object) -> None:
        """Store an object as the API server does, which counts the generations of its spec."""
        before = self.known.get(reference(obj))
        if before is not None:
            kept = {"finalizers": before["metadata"].get("finalizers", [])}
            kept["generation"] = generation(before) + (spec(before) != spec(obj))
            obj = {**obj, "metadata": {**obj["metadata"], **kept}, "status": before["status"]}
        self.known.put(json.loads(json.dumps(obj)))

    def define(self, text: str, space: str = "search") -> None:
        """Set the policy's text; its controller makes the revision."""
        policy = resource("Policy", "public", {"text": text, "mode": "Enforce"}, namespace=space)
        self.put(policy)
        self.put({**builders.revision(policy, self.now.minute + 1), "status": {}})

    def change(self, kind: str, called: str, **spec: Any) -> None:
        obj = self.known.find(kind, "search", called)
        assert obj is not None
        self.put({**obj, "spec": {**obj["spec"], **spec}})

    def join(self, called: str, number: int = 1, text: str = "one", **labels: str) -> None:
        """Make a namespace with the definitions of namespace search, or make it again with another UID."""
        self.leave(called)
        self.known.put(builders.space(called, number, **labels))
        self.define(text, called)
        for kind, its in (("Task", "search"), ("Pipeline", "syse")):
            self.known.put({**resource(kind, its, self._specs[kind], namespace=called), "status": {}})

    def leave(self, called: str) -> None:
        """Delete a namespace with all its objects."""
        for kind in ("Policy", "PolicyRevision", "Task", "Pipeline", "FactSource"):
            for obj in self.known.all(kind, called):
                self.known.remove(reference(obj))
        self.known.remove(Reference("Namespace", "", called))

    def lose_status(self) -> None:
        """Lose the status of the pool, as when it is restored from a backup; its members are still there."""
        self.known.put({**self.pool, "status": {}})
        self.owned.clear()

    def annotate(self, key: str, value: str) -> None:
        """Annotate the pool."""
        metadata = {**self.pool["metadata"], "annotations": {key: value}}
        self.known.put({**self.pool, "metadata": metadata})

    def delete(self, **annotations: str) -> None:
        pool = dict(self.pool)
        pool["metadata"] = {**pool["metadata"], "deletionTimestamp": "2026-03-01T00:00:00Z", "annotations": annotations}
        self.known.put(pool)

    # Observations.

    @property
    def pool(self) -> Object:
        found = self.known.get(POOL)
        assert found is not None
        return found

    @property
    def status(self) -> Any:
        return self.pool["status"]

    def share(self, called: str = "search", number: int = 1) -> Any:
        """Return what the pool's status has of a namespace."""
        wanted = builders.tenant(called, number).uid
        return next((entry for entry in self.status.get("namespaces", ()) if entry["uid"] == wanted), {})

    def owners(self) -> dict[str, str]:
        """Return the namespace of each member in the status; empty: none."""
        return {row["name"]: row.get("namespace", "") for row in self.status["members"]}

    def runs(self) -> dict[str, str]:
        """Return the namespace whose pipelines each member runs; empty: none."""
        bundles = {called: machine.bundle for called, machine in sorted(self.machines.items())}
        return {
            called: bundle.release.namespace if bundle and bundle.release.of_kind("Pipeline") else ""
            for called, bundle in bundles.items()
        }

    def of(self, kind: str, called: str, space: str = "search") -> Any:
        obj = self.known.find(kind, space, called)
        assert obj is not None
        return obj["status"]

    def condition(self, kind: str, called: str, of_type: str) -> tuple[str, str]:
        status = self.status if kind == "JailPool" else self.of(kind, called)
        return next(
            (condition["status"], condition["reason"])
            for condition in status["conditions"]
            if condition["type"] == of_type
        )

    def texts(self) -> list[str]:
        """Return the policy's text that each member enforces."""
        bundles = [machine.bundle for _, machine in sorted(self.machines.items())]
        found = [bundle.release.objects.get(("Policy", "public")) if bundle else None for bundle in bundles]
        return [policy["spec"]["text"] if policy else "" for policy in found]

    def observation(self, called: str, row: Observation) -> Observation:
        machine = self.machines.get(called)
        if machine is None:
            return row
        machine.failures = 0 if machine.alive else machine.failures + 1
        monitor = None
        if machine.alive:
            label = machine.bundle.label if machine.bundle else ""
            monitor = Monitor(
                ready=True,
                bundle=label,
                hash=f"hash of {label}",
                tasks=machine.tasks,
                analyzed=frozenset({"syse"}),
                sessions=machine.sessions,
            )
        return replace(
            row,
            configuration=machine.configuration,
            monitor=monitor,
            failures=machine.failures,
            refused=dict(machine.refused),
            samples=machine.samples,
        )

    def observed(self) -> Observed:
        named = shares.releases_needed(self.pool)
        stored = {key: release for key, release in self.stored.items() if key in named}
        served = tenancy.served(self.pool, self.known, stored)
        rows = {
            called: self.observation(called, row)
            for called, row in pools.observations(self.pool, self.known, stored).items()
            if self.exists(called) or not row.draining_since
        }
        definitions = {
            tenant: releases.build(self.known, share, self.refused(tenant.name), stored)
            for tenant, share in served.items()
            if tenant.name not in self.unchecked or releases.withdrawing(share, stored)
        }
        rows = pools.judged(self.pool, rows, served, definitions)
        rows = {called: self.failing(member) for called, member in rows.items()}
        places = {}
        for ordinal in pools.ordinals(self.pool, rows, Replacements()) if self.hosts else ():
            called = f"default-{ordinal}"
            host = rows[called].host if called in rows and rows[called].host in self.hosts else self.hosts[0]
            places[ordinal] = Place(called, ordinal, host, f"127.0.10.{ordinal + 1}")
        return Observed(
            shares=served,
            definitions=definitions,
            releases=stored,
            members=rows,
            places=places,
            configurations={place.name: self.digest for place in places.values()},
            effects=dict(self.effects),
        )

    def refused(self, space: str) -> dict[Reference, Condition] | None:
        return None if space in self.unchecked else refused(self.pool, self.known, space)

    def exists(self, called: str) -> bool:
        """Whether something of a member is on its host."""
        return called in self.machines

    def failing(self, member: Observation) -> Observation:
        if member.host in self.unreachable and (member.draining_since or not member.configuration):
            removal = member.draining_since is not None
            said = f"{member.host} does not answer"
            return replace(member, failed=Failure("HostUnreachable", said, self.now, removal=removal))
        return member

    # Actions of the operator.

    def plan(self) -> PoolPlan:
        return pools.reconcile(self.pool, self.observed(), self.known, self.now)

    def look(self, most: int = 10_000) -> None:
        """Reconcile; crash after ``most`` actions."""
        for action in self.plan().actions[:most]:
            self.trail.append(action)
            self.carry_out(action)

    def settle(self, looks: int = 25, seconds: int = 10, *, busy: bool = True) -> None:
        for _ in range(looks):
            self.look()
            if busy:
                self.visit(6)
            self.now += timedelta(seconds=seconds)

    def visit(self, sessions: int) -> None:
        for machine in self.machines.values():
            if machine.alive and machine.bundle:
                text = machine.bundle.release.objects.get(("Policy", "public"), {}).get("spec", {}).get("text")
                harmful = text in self.denies or machine.bundle.release.name in self.harmful
                more = (sessions, sessions * 10, sessions * 5 if harmful else 0, sessions * 1000)
                machine.counters = tuple(a + b for a, b in zip(machine.counters, more, strict=True))  # type: ignore[assignment]
                machine.samples = (
                    *machine.samples,
                    Sample(self.now, "1", machine.bundle.release.name, *machine.counters),
                )

    def carry_out(self, action: Any) -> None:
        match action:
            case SetStatus():
                self.set_status(action)
            case SetFinalizer():
                metadata = {**self.pool["metadata"], "finalizers": [FINALIZER] * action.present}
                self.known.put({**self.pool, "metadata": metadata})
            case SetAnnotation():
                annotations = {**self.pool["metadata"].get("annotations", {}), action.name: action.value}
                metadata = {
                    **self.pool["metadata"],
                    "annotations": {key: text for key, text in annotations.items() if text},
                }
                self.known.put({**self.pool, "metadata": metadata})
            case StoreRelease():
                self.stored[action.release.name] = bundles.load(bundles.store(action.release, self.pool, "shai-system"))
            case ForgetReleases():
                self.stored = {key: release for key, release in self.stored.items() if key in action.keep}
            case CompareBundles():
                comparison = {"flowsBefore": 100, "closedTotal": self.closed, "usersTotal": 3}
                self.effects[action.namespace] = Effect(action.before, action.bundle.release.name, comparison)
            case Emit():
                self.events.append(action)
            case Requeue():
                pass
            case _:
                self.carry_out_on_members(action)

    def carry_out_on_members(self, action: Any) -> None:
        match action:
            case ProvisionMembers():
                if action.host not in self.unreachable:
                    for place in action.members:
                        member = self.machines.setdefault(place.name, Machine(action.host, ""))
                        member.configuration, member.alive, member.failures = self.digest, True, 0
                        member.runtimes = frozenset(tenancy.runtimes(self.pool))
            case RemoveMembers() | ForgetMembers():
                if isinstance(action, ForgetMembers) or action.host not in self.unreachable:
                    for place in action.members:
                        self.machines.pop(place.name, None)
            case ApplyBundle():
                self.apply(action)
            case BringUp():
                always = {
                    (pipeline.pipeline, task): "Running" for pipeline in action.pipelines for task in pipeline.always
                }
                self.machines[action.member.name].tasks |= always
            case _:
                raise AssertionError(action)

    def apply(self, action: ApplyBundle) -> None:
        machine = self.machines[action.member.name]
        why = self.refusal(action.bundle, machine)
        if why:
            away = why in self.away
            machine.refused[action.bundle.label] = Failure("BundleRefused", why, self.now, passing=away)
            return
        machine.refused.pop(action.bundle.label, None)
        machine.bundle = action.bundle
        owner = self.known.find("Namespace", "", action.bundle.release.namespace)
        if owner is not None and action.bundle.release.manifests:
            machine.written.add(Tenant(name(owner), uid(owner)))
        wanted = {(entry.pipeline, task) for entry in members.tasks(action.bundle.release) for task in entry.always}
        machine.tasks = {key: machine.tasks.get(key, "Stopped") for key in wanted}

    def refusal(self, bundle: Bundle, machine: Machine) -> str:
        """Say why the monitor of a member refuses a bundle; empty: it does not."""
        release, sources = bundle.release, {source["metadata"]["name"] for source in bundle.facts.manifests}
        policy = release.objects.get(("Policy", "public"))
        if policy is not None and policy["spec"]["text"] in self.refuses:
            return "line 1: does not parse"
        runtimes = {task["spec"].get("runtimeName") for task in release.of_kind("Task")} - {None}
        if not runtimes <= machine.runtimes:
            return "there is no such runtime"
        absent = named_policies([*release.manifests]) - {name(policy) for policy in release.of_kind("Policy")}
        if absent:
            return f"there is no Policy {min(absent)}"
        return min(sources & (self.refuses | self.away), default="")

    def set_status(self, action: SetStatus) -> None:
        """Apply a part of a status: fields and conditions that the writer no longer sends are removed."""
        obj = self.known.get(reference(action.obj))
        if obj is None:
            return
        written = json.loads(json.dumps(action.status))
        owned = self.owned.setdefault((reference(obj), action.writer), set())
        merged = {key: value for key, value in obj["status"].items() if key not in owned and key != "conditions"}
        types = {condition["type"] for condition in written.get("conditions", ())}
        others = [old for old in obj["status"].get("conditions", ()) if old["type"] not in types | owned]
        merged |= written | {"conditions": [*others, *written.get("conditions", ())]}
        self.owned[reference(obj), action.writer] = types | set(written) - {"conditions"}
        self.known.put({**obj, "status": merged})


def named_policies(part: Any) -> set[str]:
    """Return the names of the Policies to which manifests refer, wherever they do, as a monitor's parser finds them."""
    if isinstance(part, list):
        return set().union(*map(named_policies, part))
    if not isinstance(part, dict):
        return set()
    own = {str(part[key]["name"]) for key in ("policy", "taint") if isinstance(part.get(key), dict)}
    return {called for called in own if "/" not in called}.union(*map(named_policies, part.values()))


def revision(text: str) -> str:
    """Return the name of the policy's revision with this text."""
    return policies.revision_name(resource("Policy", "public", {"text": text, "mode": "Enforce"}))


def kinds(actions: list[Any]) -> list[str]:
    """Describe each action and its target in a word or two."""
    return [
        f"SetStatus {action.obj['kind']} {name(action.obj)}" if isinstance(action, SetStatus) else type(action).__name__
        for action in actions
    ]


def settled(replicas: int = 3, **spec: object) -> World:
    """Return a world whose pool is ready; what happened until then is forgotten."""
    world = World(replicas, **spec)
    world.settle()
    assert world.condition("JailPool", "default", "Ready") == ("True", "AllReady"), world.status
    world.trail.clear()
    world.events.clear()
    return world


def counters(world: World) -> tuple[int, ...]:
    """Return how many members the pool has, and how many are ready, available and updated."""
    return tuple(world.status[f"{prefix}eplicas"] for prefix in ("r", "readyR", "availableR", "updatedR"))


def running_modes(world: World) -> set[str]:
    """Return the modes in which members run the pipeline."""
    bundles = [machine.bundle.release for machine in world.machines.values() if machine.bundle]
    found = [bundle.objects[key] for bundle in bundles for key in [("Pipeline", "syse")] if key in bundle.objects]
    return {pipeline["spec"].get("mode", "shai") for pipeline in found}


def first_under_way(**spec: object) -> World:
    """Return a world whose members have the first release, which is not yet stable."""
    world = World(allowedModes=["shai", "baseline"])
    world.change("Pipeline", "syse", **spec)
    while not running_modes(world):
        world.look()
    assert "stableRelease" not in world.share()
    return world
