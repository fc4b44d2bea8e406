# SPDX-License-Identifier: BSD-2-Clause
"""Surveys of a pool's hosts, for providers that need them: at the start, every minute, and after each run on a host."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shai_operator.control import poolspec
from shai_operator.providers.interface import ConfigurationError, Reason
from shai_operator.reconcile.objects import name, reference
from shai_operator.reconcile.surveys import RUNNING, HostSurvey, VirtualMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.control.jobs import Job
    from shai_operator.control.services import Services
    from shai_operator.providers.interface import Host, Surveyor
    from shai_operator.reconcile.members import Observation
    from shai_operator.reconcile.objects import Object

_LOGGER = logging.getLogger(__name__)
PERIOD_SECONDS = 60.0
_SOON_SECONDS = 5.0
"""How soon a host is surveyed again after something has been done there, so that several runs share one survey."""


class Surveys:
    """The surveys of one pool's hosts."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._found: dict[str, HostSurvey] = {}
        self._waiting: dict[str, str] = {}
        """Who has the hosts that wait for a survey."""
        self._jobs: dict[str, Job] = {}
        """The last job of each host."""
        self._due: dict[str, float] = {}
        """When each host is to be surveyed again, on the monotonic clock."""

    def found(self) -> Mapping[str, HostSurvey]:
        """Return the last survey of each host, by name."""
        return dict(self._found)

    def expected(self) -> Mapping[str, HostSurvey]:
        """Return the last survey of each host, and for those that wait for their first one a survey that says why."""
        now = datetime.now(UTC)
        waiting = {
            host: HostSurvey(now, reason=Reason.SURVEYING, message=f"waits for its turn on the host, which {who} has")
            for host, who in self._waiting.items()
        }
        return waiting | self._found

    def touched(self, host: str) -> None:
        """Note that something is, or was, done on a host: its survey is no longer right."""
        survey = self._found.get(host)
        if survey is not None:
            self._found[host] = replace(survey, stale=True)
            self._due[host] = min(self._due.get(host, 0.0), time.monotonic() + _SOON_SECONDS)

    def stop(self) -> None:
        """End the surveys that run: nobody needs them any more."""
        for job in self._jobs.values():
            job.cancel.set()

    def look(self, pool: Object, surveyor: Surveyor, known: Mapping[str, Observation]) -> float:
        """Start the surveys that are due; return the seconds until the next one is."""
        hosts = {host.name: host for host in poolspec.pool(pool).hosts if not host.gone}
        for left in self._found.keys() - hosts.keys():
            del self._found[left]
            self._due.pop(left, None)
        now = time.monotonic()
        for host in hosts.values():
            key = f"{name(pool)}/survey/{host.name}"
            if self._due.get(host.name, 0.0) > now or self._services.jobs.running(key):
                continue
            self._due[host.name] = now + PERIOD_SECONDS
            self._start(key, pool, host, surveyor, known)
        return max(min(self._due.values(), default=now + PERIOD_SECONDS) - now, 1.0)

    def _start(self, key: str, pool: Object, host: Host, surveyor: Surveyor, known: Mapping[str, Observation]) -> None:
        machines = self._running(pool, host.name, known)

        def waits(who: str) -> None:
            self._waiting[host.name] = who
            self._services.loop.queue.add(reference(pool))

        async def work(job: Job) -> None:
            try:
                target = await poolspec.login(pool, host, self._services.cluster)
                who = f"JailPool {name(pool)}, a survey"
                async with self._services.leases.hold(target.address, who, waits):
                    self._waiting.pop(host.name, None)
                    settings = poolspec.existing_machines(pool)
                    survey = await surveyor.survey(target, machines, settings, cancel=job.cancel)
            except ConfigurationError as error:
                survey = HostSurvey(datetime.now(UTC), reason=Reason.PLAYBOOK_FAILED, message=str(error))
            except Exception as error:
                # What is known of the host is not known to be right any more, whatever has failed.
                message = f"host {host.name} was not surveyed: {error}"
                survey = HostSurvey(datetime.now(UTC), reason=Reason.PLAYBOOK_FAILED, message=message)
                _LOGGER.exception("%s", message)
            finally:
                self._waiting.pop(host.name, None)
            if job.cancel.is_set():
                return
            before = self._found.get(host.name)
            if not survey.reached and before is not None:
                survey = replace(before, at=survey.at, reason=survey.reason, message=survey.message)
            self._found[host.name] = survey

        self._jobs[host.name] = self._services.jobs.start(
            key, work, lambda: self._services.loop.queue.add(reference(pool))
        )

    def _running(self, pool: Object, host: str, known: Mapping[str, Observation]) -> list[VirtualMachine]:
        """Return the machines into which a survey looks: those that ran the last time."""
        survey = self._found.get(host)
        ran = {machine for machine, seen in survey.own.items() if seen.state == RUNNING} if survey else set()
        here = {member.ordinal for member in known.values() if member.host == host}
        machines = {found.name: found for ordinal in here if (found := poolspec.machine(pool, ordinal))}
        return [machine for called, machine in sorted(machines.items()) if called in ran]
