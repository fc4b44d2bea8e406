# SPDX-License-Identifier: BSD-2-Clause
"""Surveys that end otherwise than with an answer."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control import poolspec
from shai_operator.control.jobs import Jobs
from shai_operator.control.surveying import Surveys
from shai_operator.reconcile.surveys import HostSurvey
from tests.reconcile.builders import resource
from tests.reconcile.machine_world import spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from shai_operator.control.services import Services
    from shai_operator.providers.interface import Host, Surveyor
    from shai_operator.reconcile.objects import Object, Reference

POOL = resource("JailPool", "default", {**spec(), "directory": "/srv"})


class Waiting:
    """Surveys that wait until they are cancelled."""

    async def survey(self, *_: object, cancel: asyncio.Event) -> HostSurvey:
        await cancel.wait()
        return HostSurvey(cast("Any", None), reason="Cancelled")


class Failing:
    """Surveys that fail otherwise than a playbook does."""

    async def survey(self, *_: object, **__: object) -> HostSurvey:
        raise ValueError("half an answer")


class Leases:
    """Locks of hosts, which are taken until ``free`` is set."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()

    @contextlib.asynccontextmanager
    async def hold(self, _: str, who: str, waiting: Callable[[str], None]) -> AsyncIterator[None]:
        assert who == "JailPool default, a survey"
        if not self.free.is_set():
            waiting("JailPool other, an installation")
        await self.free.wait()
        yield


async def login(_: Object, host: Host, __: object) -> Host:
    return host


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setattr(poolspec, "login", login)
    return Jobs()


def surveys(jobs: Jobs, looked_at: list[Reference], leases: Leases | None = None) -> Surveys:
    queue = SimpleNamespace(add=looked_at.append)
    parts = SimpleNamespace(jobs=jobs, leases=leases or Leases(), cluster=None, loop=SimpleNamespace(queue=queue))
    return Surveys(cast("Services", parts))


async def ended(jobs: Jobs) -> None:
    while any(jobs.running(f"default/survey/{host}") for host in ("h1", "h2")):
        await asyncio.sleep(0)


async def test_whatever_fails_in_a_survey_is_said_of_its_host(jobs: Jobs) -> None:
    looked_at: list[Reference] = []
    made = surveys(jobs, looked_at)
    made.look(POOL, cast("Surveyor", Failing()), {})
    await ended(jobs)
    assert {host: survey.reached for host, survey in made.found().items()} == {"h1": False, "h2": False}
    assert made.found()["h1"].message == "host h1 was not surveyed: half an answer"
    assert len(looked_at) == 2


async def test_a_host_that_another_pool_has_is_waited_for_aloud(jobs: Jobs) -> None:
    looked_at: list[Reference] = []
    leases = Leases()
    leases.free.clear()
    made = surveys(jobs, looked_at, leases)
    made.look(POOL, cast("Surveyor", Failing()), {})
    while len(looked_at) < 2:
        await asyncio.sleep(0)
    waits = "waits for its turn on the host, which JailPool other, an installation has"
    expected = {host: (survey.reason, survey.message) for host, survey in made.expected().items()}
    assert expected == {"h1": ("Surveying", waits), "h2": ("Surveying", waits)}
    assert made.found() == {}, "nothing is known of the hosts, and so there is no event either"
    leases.free.set()
    await ended(jobs)
    assert made.expected() == made.found()
    assert set(made.found()) == {"h1", "h2"}


async def test_surveys_end_with_their_pool(jobs: Jobs) -> None:
    made = surveys(jobs, [])
    made.look(POOL, cast("Surveyor", Waiting()), {})
    await asyncio.sleep(0)
    made.stop()
    await ended(jobs)
    assert made.found() == {}
