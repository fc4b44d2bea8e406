# SPDX-License-Identifier: BSD-2-Clause
"""The life of two members on this machine: real playbooks, supervisors, stores and monitors.

One test, because runs are slow: each step starts where the previous one has ended.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from shai_operator.providers import authority, directories, process
from shai_operator.providers.interface import (
    Data,
    Grounds,
    KeyValue,
    Member,
    MemberConfiguration,
    Outcome,
    Progress,
    Reason,
)
from shai_operator.providers.local import LocalProvider, local_host
from shai_operator.providers.playbooks import Playbooks
from testing.waiting import until_async
from tests.providers import failing
from tests.providers.failing import Place
from tests.providers.support import arguments, processes_with, quiet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tests.providers.conftest import Site

TOUCHED = Path("/tmp/shai-was-evaluated")  # noqa: S108 - nobody makes it
TEMPLATE = f"{{{{ lookup('pipe', 'touch {TOUCHED}') }}}} 'quoted' $HOME %s $(IMAGE)"
"""A variable's value that must arrive unchanged, except for $(IMAGE)."""
ODD = "/{{ 7 * 7 }} {% raw %} 'quoted' \"double\" $HOME `id` %s \\ ; & | * ü"
"""A path of a runtime that must arrive unchanged."""
MARK = "trusted.shai.data"
"""With it, a monitor knows its data directory (docs/enforcement.md, "Who a task is")."""
STRANGE = "-x {{ 7 * 7 }} 'q' \"d\" $HOME `id` $(id) %s \\ ; & | * ü"
"""The name of a file or a directory that is read on the host."""
SOURCES = (
    f"unix:/run/{{{{ lookup('pipe', 'touch {TOUCHED}') }}}} 'quoted' `id` %s \\.sock",
    "https://facts.example/a,b/",
)
_TASKS = "roles/linux_member/tasks"
ENDS = {
    "t-0": Place(f"{_TASKS}/certificate.yml", "Install the certificate"),
    "t-1": Place(f"{_TASKS}/main.yml", "Load the key-value store's seed"),
}
"""Where a first installation ends: a key without a certificate, services without a seed."""
REMOVAL_ENDS = {
    "t-0": Place(f"{_TASKS}/stop.yml", "End supervisord"),
    "t-1": Place(f"{_TASKS}/remove.yml", "Delete the member's files"),
}
CANARY = "canary-of-the-operators-environment"


class Life:
    """A pool of members on this machine, for the steps."""

    def __init__(self, site: Site, provider: LocalProvider) -> None:
        self.site, self.provider = site, provider
        self.members = provider.place(site.pool, [0, 1], {}).members

    async def provision(
        self, configuration: MemberConfiguration, members: Sequence[Member] = (), seen: list[Progress] | None = None
    ) -> Mapping[str, Outcome]:
        outcomes = await self.provider.provision(
            local_host(),
            members or self.members,
            configuration,
            progress=quiet if seen is None else seen.append,
            cancel=asyncio.Event(),
        )
        assert {name: outcome.failure for name, outcome in outcomes.items()} == dict.fromkeys(outcomes)
        return outcomes

    async def remove(self, members: Sequence[Member]) -> Mapping[str, Outcome]:
        return await self.provider.remove(
            local_host(), members, Grounds("t", str(self.site.directory)), progress=quiet, cancel=asyncio.Event()
        )

    def path(self, member: Member) -> Path:
        return self.site.directory / member.name

    def processes(self, member: Member) -> dict[str, int]:
        """Return the process numbers of a member's services."""
        found = {}
        for service, sign in {
            "supervisor": "supervisord.conf",
            "monitor": "/bin/shai monitor",
            "store": "redis-server",
        }.items():
            for number in processes_with(str(self.path(member))):
                if sign in arguments(number) and "supervisorctl" not in arguments(number):
                    found[service] = number
        return found

    @asynccontextmanager
    async def client(self, identity: authority.Identity | None) -> AsyncIterator[httpx2.AsyncClient]:
        """Connect as the operator does, with certificates on both sides."""
        context = ssl.create_default_context(cadata=self.site.authority.certificate)
        if identity is not None:
            file = self.site.base / "client.pem"
            file.write_text(identity.certificate + identity.key)
            context.load_cert_chain(file)
        async with httpx2.AsyncClient(verify=context, trust_env=False) as client:
            yield client

    def url(self, member: Member) -> str:
        return f"https://{member.address}:{self.site.port}/v1/status"

    async def answers(self, member: Member) -> bool:
        async with self.client(authority.issue_client(self.site.authority, "operator")) as client:
            try:
                return (await client.get(self.url(member))).status_code == httpx2.codes.OK
            except httpx2.TransportError:
                return False


@pytest.fixture
async def life(site: Site, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Life]:
    monkeypatch.setenv("SHAI_CANARY", CANARY)
    playbooks = Playbooks(directory=site.base / "runs")
    yield Life(site, LocalProvider(playbooks, site.authority))
    await playbooks.close()


async def test_life_of_two_members(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    site = life.site
    source = site.base / STRANGE
    source.mkdir()
    (source / "mail.txt").write_text("seeded")
    os.setxattr(source, MARK, b"of another data directory")
    seed = 'SET greeting "good day"\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n'
    configuration = MemberConfiguration(
        str(site.directory),
        await asyncio.to_thread(lambda: site.image(**{f"data/{STRANGE}": seed})),
        life.provider.installer,
        data=Data(str(source)),
        key_value=KeyValue(f"$(IMAGE)/data/{STRANGE}"),
        variables=(("SAID", TEMPLATE),),
        runtimes=(("odd", (ODD, "/--data")), ("1e3", ("$(IMAGE)/bin", "/lib"))),
        sources=SOURCES,
        monitor_port=site.port,
    )
    async with with_failures(life, ENDS, monkeypatch) as provider:
        outcomes = await provider.provision(
            local_host(), life.members, configuration, progress=quiet, cancel=asyncio.Event()
        )
        failed_at(outcomes, ENDS)
    kept = keep_run_directories(site.base / "kept", monkeypatch)
    await installs(life, configuration)
    for member in life.members:
        data = site.directory / member.name / "data"
        assert MARK not in os.listxattr(data) or os.getxattr(data, MARK) != os.getxattr(source, MARK)
    has_left_no_secrets(kept, site.authority)
    assert not TOUCHED.exists()  # noqa: ASYNC240 - it is at once
    await talks_to_its_operator_only(life)
    await changes_nothing_the_second_time(life, configuration)
    await comes_back_when_killed(life)
    changed = replace(configuration, variables=(("SAID", "something else"),), sources=SOURCES[:1])
    await restarts_what_a_change_concerns(life, changed)
    await switches_to_another_image(life, changed)
    async with with_failures(life, REMOVAL_ENDS, monkeypatch) as provider:
        grounds = Grounds("t", str(site.directory))
        outcomes = await provider.remove(local_host(), life.members, grounds, progress=quiet, cancel=asyncio.Event())
        failed_at(outcomes, REMOVAL_ENDS)
    await leaves_nothing(life)


@asynccontextmanager
async def with_failures(
    life: Life, ends: Mapping[str, Place], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalProvider]:
    """Give a provider whose runs end before the given tasks. The next run of the right one goes on from there."""
    place = Path(tempfile.mkdtemp(dir=life.site.base)) / "collection"
    failing.ending_before(place, ends)
    playbooks = Playbooks(directory=life.site.base / "runs")
    with monkeypatch.context() as broken:
        broken.setattr(process, "COLLECTION", place)
        yield LocalProvider(playbooks, life.site.authority)
    await playbooks.close()


def failed_at(outcomes: Mapping[str, Outcome], ends: Mapping[str, Place]) -> None:
    """Each member failed where it should have, and its message names no other member."""
    failures = {name: outcome.failure.message for name, outcome in outcomes.items() if outcome.failure}
    assert set(failures) == set(ends), failures
    for name, message in failures.items():
        assert message.startswith(f"host local: task {ends[name].task!r}: ")
        assert not [other for other in outcomes if other != name and other in message]


def keep_run_directories(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Move a run's directory to ``place`` instead of deleting it."""
    place.mkdir()
    monkeypatch.setattr(directories, "discard", lambda directory: shutil.move(directory, place / directory.name))
    return place


async def installs(life: Life, configuration: MemberConfiguration) -> None:
    seen: list[Progress] = []
    outcomes = await life.provision(configuration, seen=seen)
    assert seen[0].play == "Reach the host"
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert {step.total for step in seen} == {seen[-1].done}
    for member in life.members:
        outcome, path = outcomes[member.name], life.path(member)
        assert outcome.changed
        assert outcome.certificate_ends is not None
        assert timedelta(days=89) < outcome.certificate_ends - datetime.now(UTC) < timedelta(days=91)
        assert (path / "data/mail.txt").read_text() == "seeded"
        assert (path / "tls/monitor.key").stat().st_mode & 0o777 == 0o600
        assert path.stat().st_mode & 0o777 == 0o711  # tasks run as other users
        assert (path / "data").stat().st_dev == (path / "state").stat().st_dev
        assert set(life.processes(member)) == {"supervisor", "monitor", "store"}
        assert said_to(life, member) == TEMPLATE.replace("$(IMAGE)", str((path / "image").resolve()))
        runtimes = arguments_of(life, member, "--runtime")
        assert runtimes == [f"odd={ODD},/--data", "1e3=$(IMAGE)/bin,/lib"], "the monitor replaces variables"
        assert tuple(arguments_of(life, member, "--allow-source")) == SOURCES
        assert stored(path, "greeting") == "good day"
        for number in life.processes(member).values():
            assert CANARY not in environment(number)


def said_to(life: Life, member: Member) -> str:
    """Return the variable SAID with which a member's monitor was started."""
    found = arguments_of(life, member, "--define")
    return next(part.removeprefix("SAID=") for part in found if part.startswith("SAID="))


def arguments_of(life: Life, member: Member, option: str) -> list[str]:
    """Return the values of an option with which a member's monitor was started."""
    parts = Path(f"/proc/{life.processes(member)['monitor']}/cmdline").read_bytes().decode().split("\0")
    return [value for name, value in itertools.pairwise(parts) if name == option]


def environment(process: int) -> str:
    return Path(f"/proc/{process}/environ").read_text()


def stored(path: Path, key: str) -> str:
    secrets = json.loads((path / "keyvalue/secrets.json").read_text())
    login = f"{secrets['AuthCommand']} {secrets['Administrator']} {secrets['Password']}"
    command = ["redis-cli", "--raw", "-s", str(path / "run/store.sock")]
    answer = subprocess.run(
        command, input=f"{login}\nGET {key}\n", capture_output=True, text=True, check=True, timeout=300
    )
    return answer.stdout.splitlines()[-1]


def has_left_no_secrets(kept: Path, ours: authority.Identity) -> None:
    """Look for the authority's key in all files of the run, except in its own."""
    (directory,) = kept.iterdir()
    line = ours.key.splitlines()[1]
    found = {
        path.name
        for path in directory.rglob("*")
        if path.is_file() and "ansible_collections" not in path.parts and line.encode() in path.read_bytes()
    }
    assert found == {"authority.key"}
    command = next(directory.glob("artifacts/*/command")).read_text()
    assert CANARY not in command
    assert "provision.yml" in command


async def talks_to_its_operator_only(life: Life) -> None:
    stranger = authority.issue_client(authority.create(), "operator")
    for member in life.members:
        assert await life.answers(member)
        for identity in (None, stranger):
            async with life.client(identity) as client:
                # The refusal comes after the handshake; httpx2 does not convert the error.
                with pytest.raises((httpx2.TransportError, ssl.SSLError)):
                    await client.get(life.url(member))


async def changes_nothing_the_second_time(life: Life, configuration: MemberConfiguration) -> None:
    before = [life.processes(member) for member in life.members]
    outcomes = await life.provision(configuration)
    assert {name: outcome.changed for name, outcome in outcomes.items()} == {"t-0": False, "t-1": False}
    assert [life.processes(member) for member in life.members] == before


async def comes_back_when_killed(life: Life) -> None:
    member = life.members[0]
    before = life.processes(member)["monitor"]
    os.kill(before, signal.SIGKILL)
    await until_async(lambda: life.processes(member).get("monitor", before) != before, "the monitor is started again")


async def restarts_what_a_change_concerns(life: Life, changed: MemberConfiguration) -> None:
    member, other = life.members
    before, untouched = life.processes(member), life.processes(other)
    await life.provision(changed, [member])
    after = life.processes(member)
    assert {name for name, number in after.items() if number != before[name]} == {"monitor"}
    assert said_to(life, member) == "something else"
    allowed = arguments_of(life, member, "--allow-source")
    assert tuple(allowed) == SOURCES[:1], "what is allowed no longer is fetched no longer"
    assert life.processes(other) == untouched


async def switches_to_another_image(life: Life, changed: MemberConfiguration) -> None:
    """One member gets another image. Before, its supervisor was killed, and its services with it."""
    stays, member = life.members
    os.kill(life.processes(member)["supervisor"], signal.SIGKILL)
    await until_async(lambda: life.processes(member) == {}, "the services end with their supervisor")
    (life.path(member) / "data/mine.txt").write_text("mine")
    old = (life.path(member) / "image").resolve()
    image = await asyncio.to_thread(lambda: life.site.image("next", note="new"))
    await life.provision(replace(changed, image=image), [member])
    assert (life.path(member) / "image").resolve().name == image.digest
    assert arguments(life.processes(member)["monitor"]).startswith(
        f"{life.site.directory}/images/{image.digest}/bin/shai"
    )
    assert await life.answers(member)
    assert stored(life.path(member), "greeting") == "good day"
    assert (life.path(member) / "data/mine.txt").read_text() == "mine"
    assert (life.path(stays) / "image").resolve() == old
    assert old.exists()


async def leaves_nothing(life: Life) -> None:
    foreign = replace(life.members[0], name="t-2", ordinal=2)
    life.path(foreign).mkdir()
    (life.path(foreign) / "precious").touch()
    outcomes = await life.remove([*life.members, foreign])
    assert [outcomes[name].failure for name in ("t-0", "t-1")] == [None, None]
    refused = outcomes["t-2"].failure
    assert refused is not None
    assert refused.reason is Reason.PLAYBOOK_FAILED
    assert "does not carry the mark" in refused.message
    assert [path.name for path in life.site.directory.iterdir()] == ["t-2"]
    assert (life.path(foreign) / "precious").exists()
    assert processes_with(str(life.site.directory)) == []

    (life.path(foreign) / "precious").unlink()
    life.path(foreign).rmdir()
    again = await life.remove(life.members)
    assert [(outcome.failure, outcome.changed) for outcome in again.values()] == [(None, False)] * 2
    assert not life.site.directory.exists()


async def test_an_image_that_is_not_what_was_read_is_not_installed(life: Life) -> None:
    image = await asyncio.to_thread(life.site.image)
    configuration = MemberConfiguration(str(life.site.directory), image, life.provider.installer)

    async def reason() -> Reason:
        outcomes = await life.provider.provision(
            local_host(), life.members, configuration, progress=quiet, cancel=asyncio.Event()
        )
        failures = {outcome.failure for outcome in outcomes.values()}
        assert len(failures) == 1
        (failure,) = failures
        assert failure is not None
        return failure.reason

    (Path(image.path) / "note").write_text("changed since")
    assert await reason() is Reason.IMAGE_MISSING
    (Path(image.path) / "bin/shai").unlink()
    assert await reason() is Reason.IMAGE_MISSING
    assert not life.site.directory.exists()
