# SPDX-License-Identifier: BSD-2-Clause
"""Members of a pool: observations of them, what is done with them, and whether they serve."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from shai_operator.reconcile import order
from shai_operator.reconcile.bundles import label_parts
from shai_operator.reconcile.objects import spec
from shai_operator.reconcile.tenants import NOBODY, Tenant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shai_operator.reconcile.bundles import Bundle, Release

_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 10, 600
_SAMPLES_LIMIT = 512


@dataclass(frozen=True)
class Failure:
    """The last attempt at an operation, which failed."""

    reason: str
    """A word for programs: a reason of the condition Provisioned, or BundleRefused, TaskFailed, AnalysisFailed."""
    message: str
    at: datetime
    attempts: int = 1
    """Failures in a row, this one included."""
    removal: bool = False
    """Whether the member was to be removed; else to be installed, or to be given something."""
    confidential: bool = False
    """Whether the message has where a monitor is, or what its host said: it is not for authors of pipelines."""
    passing: bool = False
    """Whether its cause lies not in what was asked for: a monitor that ends, or a source of facts that is away."""

    def retry_at(self) -> datetime:
        """Return when to try again: the delay doubles with each failure, up to ten minutes."""
        seconds = min(_FIRST_RETRY_SECONDS * 2 ** min(self.attempts - 1, 16), _LAST_RETRY_SECONDS)
        return self.at + timedelta(seconds=seconds)


WITHDRAWN = "NamespaceWithdrawn"
"""The reason of a member whose namespace may not use the pool any more."""
NOT_TRIED = "Cancelled"
"""The reason of a failure of an operation that did not run to its end, or did not begin."""


@dataclass(frozen=True)
class Progress:
    """The progress of a playbook."""

    play: str = ""
    task: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True)
class Job:
    """An operation on a member that is under way. While it runs, no other one is started."""

    kind: str
    """provision, remove, apply or bringUp."""
    progress: Progress = field(default_factory=Progress)
    waiting: str = ""
    """For what it waits before it begins; empty: it has begun."""


@dataclass(frozen=True)
class Sample:
    """A monitor's counters at one moment. They count from the start of its process."""

    at: datetime
    started: str
    """Identifies the process: counters of two processes are never subtracted."""
    release: str
    """The release in force. No sample is taken while the member swaps releases."""
    sessions: int
    """Sessions that have ended."""
    decisions: int
    refusals: int
    """Decisions that were denials."""
    microseconds: int
    """Time that the monitor spent on decisions."""


@dataclass(frozen=True)
class Monitor:
    """The status that a member's monitor reports."""

    ready: bool
    reason: str = ""
    """Why the monitor is not ready."""
    bundle: str = ""
    """Label of the bundle in force."""
    hash: str = ""
    """The monitor's own hash of the bundle."""
    started: str = ""
    """When it started, as it says it: identifies the process."""
    tasks: Mapping[tuple[str, str], str] | None = None
    """State of each task, by pipeline and task; None when they are not known."""
    analyzed: frozenset[str] = frozenset()
    """Pipelines whose last analysis is of the bundle in force and has succeeded."""
    sessions: int = 0
    backend: str = ""
    """What confines tasks on its machine, as `shai doctor` says it; empty: nothing does, or it does not say."""


@dataclass(frozen=True)
class Observation:
    """All that is known of one member. `member_rows` reads the part that the last status kept; the rest is observed."""

    name: str
    ordinal: int
    host: str = ""
    address: str = ""
    tenant: Tenant = NOBODY
    """The namespace that the member belongs to until it is removed."""
    withdrawn: str = ""
    """Why the member runs nothing and keeps its data: this namespace may not use the pool any more, or it is not known
    that the data are of this namespace. Empty: it may run something."""
    foreign: bool = False
    """Whether its monitor has a bundle of which the status knows nothing."""
    configuration: str = ""
    """Digest with which the member was last provisioned successfully; empty when it never was."""
    image: str = ""
    certificate_ends: datetime | None = None
    """When the monitor's certificate expires; None when this is not known."""
    bundle: str = ""
    """Label of the bundle that the member has, or last had, in force; also while it cannot be reached."""
    draining_since: datetime | None = None
    reason: str = ""
    served: bool = False
    """The reason in the member's row of the status, and whether it is ready by this row."""
    monitor: Monitor | None = None
    """The monitor's status; None when the monitor does not answer, or was never asked."""
    unreachable: str = ""
    """Why the monitor does not answer."""
    late: int = 0
    """Consecutive observations in which the monitor took too long to answer; 0 when it answered, or was not there."""
    failures: int = 0
    """Consecutive observations in which the member was unreachable or not ready; 0 after it has been provisioned."""
    healed: int = 0
    """Times that the member has been provisioned since it was last ready, or could not be for reasons of its own."""
    job: Job | None = None
    insufficient: str = ""
    """Why its machine does not confine tasks as its pool requires; empty: it does, or is not known."""
    failed: Failure | None = None
    """The last provisioning or removal, when it failed."""
    refused: Mapping[str, Failure] = field(default_factory=dict)
    """Bundles that the monitor refused because of their content, by label. A monitor that did not answer has refused
    nothing."""
    bring_up_failed: Failure | None = None
    """The last attempt to start its tasks, when it failed."""
    samples: tuple[Sample, ...] = ()
    """Samples in order of time; see `remember`."""

    @property
    def release(self) -> str:
        """The release that the member has, or last had, in force."""
        return label_parts(self.monitor.bundle if self.monitor else self.bundle)[0]

    @property
    def removal_failed(self) -> Failure | None:
        """The last removal, when it failed and nothing was tried since."""
        return self.failed if self.failed is not None and self.failed.removal else None

    @property
    def place(self) -> Place:
        """The place of the member."""
        return Place(self.name, self.ordinal, self.host, self.address)

    def busy(self, *kinds: str) -> bool:
        """Whether a job of one of these kinds (none: of any kind) works on the member."""
        return self.job is not None and (not kinds or self.job.kind in kinds)


@dataclass(frozen=True)
class Place:
    """Where a member is, or will be, installed."""

    name: str
    ordinal: int
    host: str
    address: str
    image: str = ""
    """What its virtual machine was, or is to be, made from; empty: it is in none."""


@dataclass(frozen=True)
class ProvisionMembers:
    """Run the provider's installation for members of one host, as one job of kind ``provision``.

    On success, each member's ``configuration`` is the digest that was wanted when the job started.
    """

    host: str
    members: tuple[Place, ...]
    cause: str
    """For people: new, changed, not answering, or its certificate is due."""


@dataclass(frozen=True)
class RemoveMembers:
    """Run the provider's removal for members of one host, as one job of kind ``remove``.

    A removed member is no longer among the observations.
    """

    host: str
    members: tuple[Place, ...]
    condemned: frozenset[int] = frozenset()
    """The numbers of the virtual machines to destroy with them, because none of their members stays."""


@dataclass(frozen=True)
class ForgetMembers:
    """Give up members that cannot be removed from their host, because a person has asked for this."""

    members: tuple[Place, ...]


@dataclass(frozen=True)
class ApplyBundle:
    """Swap a member to a bundle, as a job of kind ``apply``."""

    member: Place
    bundle: Bundle


@dataclass(frozen=True)
class BringUp:
    """Start the tasks and analyses of a member's bundle, as a job of kind ``bringUp``.

    For each pipeline: run each task of ``once`` that has not succeeded to its end, in their order, run the analysis
    unless the last one is of the bundle in force, then start each task of ``always`` that does not run.
    """

    member: Place
    pipelines: tuple[PipelineTasks, ...]


@dataclass(frozen=True)
class PipelineTasks:
    """The tasks of a pipeline.

    Those that run once start as soon as the tasks in ``after`` have ended, the others after all of them.
    """

    pipeline: str
    once: tuple[str, ...]
    always: tuple[str, ...]
    namespace: str = ""
    after: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Standing:
    """Whether a member serves its bundle, and if not, why."""

    ready: bool
    reason: str
    message: str
    confidential: bool = False
    """Whether the message has what programs and hosts said: that can name other pools, documents, logins."""

    @property
    def told(self) -> str:
        """Why it does not serve its bundle, for authors of pipelines, who cannot read JailPools."""
        return f"{self.reason}, of which the JailPool's status says more" if self.confidential else self.message


class _Why(NamedTuple):
    """The part of a standing that follows from one observation."""

    reason: str
    message: str
    confidential: bool = False


def tasks(release: Release) -> tuple[PipelineTasks, ...]:
    """Return the tasks that have to run for a release: all but those that others become by raising their taint."""
    found = []
    for pipeline in release.of_kind("Pipeline"):
        specs = {task: spec(release.objects["Task", task]) for task in spec(pipeline)["tasks"]}
        raised = {task for one in specs.values() for task in one.get("raisesTo", ())}
        named = [task for task in specs if task not in raised]
        ends = {task for task in named if specs[task].get("run") == "Once"}
        objects = {task: release.objects["Task", task] for task in specs}
        graph = order.graph(pipeline, objects)
        found.append(
            PipelineTasks(
                pipeline["metadata"]["name"],
                tuple(task for task in named if task in ends),
                tuple(task for task in named if task not in ends),
                release.namespace,
                {task: graph.before(task) for task in named if task in ends},
            )
        )
    return tuple(found)


def idle_tasks(monitor: Monitor, wanted: Sequence[PipelineTasks]) -> list[str]:
    """Return the tasks that are not in the state in which they should be, as ``pipeline/task``."""
    states = monitor.tasks or {}
    found = []
    for entry in wanted:
        due = [(task, "Succeeded") for task in entry.once] + [(task, "Running") for task in entry.always]
        found += [f"{entry.pipeline}/{task}" for task, state in due if states.get((entry.pipeline, task)) != state]
    return found


def standing(member: Observation, releases: Mapping[str, Release], target: str) -> Standing:
    """Judge a member by its bundle in force; ``target`` is the label of the bundle that it should have."""
    serves = _serves(member, releases)
    why = _installation(member) or _service(member, target, serves=serves)
    away = member.busy("provision", "remove") or member.draining_since is not None
    return Standing(serves and not away, *why)


def _installation(member: Observation) -> _Why | None:
    if member.busy("remove") or member.draining_since:
        failed = member.removal_failed
        if failed is not None:
            return _Why(failed.reason, f"cannot be removed: {failed.message}", confidential=True)
        return _Why("Draining", "is being removed; no new sessions should come" + _waits(member))
    if member.busy("provision"):
        return _Why("Provisioning", "is being provisioned" + _waits(member))
    if member.failed is not None:
        return _Why(member.failed.reason, member.failed.message, confidential=True)
    return None if member.configuration else _Why("Provisioning", "is to be provisioned")


def _waits(member: Observation) -> str:
    # Authors of pipelines read this in their statuses: who has the host is not for them.
    return "; it waits for its turn on its host" if member.job and member.job.waiting else ""


def _service(member: Observation, target: str, *, serves: bool) -> _Why:
    monitor, failed = member.monitor, member.bring_up_failed
    if monitor is None or member.insufficient or not monitor.ready:
        return _unusable(member)
    if target in member.refused:
        return _Why("BundleRefused", member.refused[target].message, confidential=True)
    if member.withdrawn:
        return _Why(WITHDRAWN, member.withdrawn, confidential=True)
    if failed is not None and not serves:
        return _Why(failed.reason, failed.message, failed.confidential)
    if target and monitor.bundle != target:
        return _Why("BundlePending", f"is to get bundle {target}")
    return _Why("Ready", "") if serves else _Why("Starting", "its tasks are being started")


def _unusable(member: Observation) -> _Why:
    if member.monitor is None:
        seen = bool(member.unreachable)
        return _Why("Unreachable", member.unreachable or "has not been asked yet", confidential=seen)
    if member.insufficient:
        return _Why("EnforcementInsufficient", member.insufficient, confidential=True)
    reason = member.monitor.reason
    return _Why("MonitorNotReady", reason or "its monitor starts", confidential=bool(reason))


def _serves(member: Observation, releases: Mapping[str, Release]) -> bool:
    """Whether all tasks of a member's release in force are in the state in which they should be."""
    monitor = member.monitor
    if monitor is None or not monitor.ready or monitor.tasks is None or member.insufficient or member.withdrawn:
        return False
    release = releases.get(member.release)
    if release is None:  # no release, or one that is no longer stored: its tasks are not known
        return all(state in {"Running", "Succeeded"} for state in monitor.tasks.values())
    return not idle_tasks(monitor, tasks(release))


def remember(samples: Sequence[Sample], sample: Sample) -> tuple[Sample, ...]:
    """Append a sample.

    When there are many, every second sample of the older half is dropped, so that the samples cover a longer time.
    Those before and after a start of the monitor or a swap of bundles stay: the counters up to there would be lost.
    """
    kept = (*samples, sample)
    if len(kept) <= _SAMPLES_LIMIT:
        return kept
    half = _SAMPLES_LIMIT // 2
    older = [found for number, found in enumerate(kept[:half]) if number % 2 == 0 or _turns(kept, number)]
    return (*older, *kept[half:])[-_SAMPLES_LIMIT:]


def _turns(samples: Sequence[Sample], number: int) -> bool:
    """Whether a sample is of another process or release than one of its neighbours."""
    around = samples[max(number - 1, 0) : number + 2]
    return len({(sample.started, sample.release) for sample in around}) > 1
