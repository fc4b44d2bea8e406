# SPDX-License-Identifier: BSD-2-Clause
"""Members on other hosts, with a stand-in for their provider: what a measurement installs, and that it goes again."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from shai_operator.control.measuring import MeasuringError, Results, Slices, Subject
from shai_operator.control.remote_measuring import RemoteLoadGenerator
from shai_operator.providers import authority, images
from shai_operator.providers.interface import (
    DataMode,
    Failure,
    Grounds,
    Member,
    MemberConfiguration,
    Outcome,
    Progress,
    Reason,
)
from shai_operator.reconcile.surveys import VirtualMachine
from tests.reconcile.builders import resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from shai_operator.control.measuring import LocalLoadGenerator
    from shai_operator.control.services import Services
    from shai_operator.providers.interface import Provider

LOG = "its log ends: Alice's diary"
BROKEN = Outcome(Failure(Reason.PLAYBOOK_FAILED, f"host rack: the monitor is not ready; {LOG}"))


@dataclass
class Host:
    """A provider; a name in ``failing`` makes the step about it fail."""

    installer: str = "1"
    failing: str = ""
    installed: dict[str, MemberConfiguration] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    async def provision(
        self, _: object, members: Sequence[Member], configuration: MemberConfiguration, **more: Any
    ) -> Mapping[str, Outcome]:
        (member,) = members
        assert not more["cancel"].is_set()
        self.installed[member.name] = configuration
        self.members[member.name] = member
        return {member.name: self._outcome(f"install {member.name}")}

    async def remove(self, _: object, members: Sequence[Member], place: Grounds, **more: Any) -> Mapping[str, Outcome]:
        more["progress"](Progress("rack", "Remove", "Stop", 1, 2))
        assert place.directory == "/pools"
        assert not more["cancel"].is_set(), "nothing stays, whatever was cancelled"
        return {member.name: self._outcome(f"remove {member.name}") for member in members}

    async def read(self, *_: object, **__: object) -> Outcome:
        return self._outcome("read")

    def _outcome(self, what: str) -> Outcome:
        self.done.append(what)
        return BROKEN if what == self.failing else Outcome()


def permissions(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


class Leases:
    """Locks that somebody else has at first."""

    def __init__(self, holder: str) -> None:
        self._holder = holder

    @contextlib.asynccontextmanager
    async def hold(self, host: str, who: str, waiting: Callable[[str], None]) -> AsyncIterator[None]:
        assert (host, who) == ("127.0.0.1", "a Benchmark")
        if self._holder:
            waiting(self._holder)
        yield


ALL = ["install main-0-b", "install main-0-c", "read", "remove main-0-b", "remove main-0-c"]


@dataclass
class World:
    host: Host
    place: Path
    seen: dict[str, Any] = field(default_factory=dict)
    told: list[Slices] = field(default_factory=list)

    where: str = "local"
    """The member's host."""
    holder: str = ""
    """Who has the host when it is wanted."""
    machines: bool = False
    """Whether the pool's members are in virtual machines."""

    async def measure(self, near: Callable[[Subject], Results] | None = None, digest: str = "") -> Results:
        image = images.read(self.place / "images", "default")
        found = near or (lambda _: Results({}, "a table"))

        async def run(subject: Subject, _plan: object, progress: Callable[[Slices], None], _: object) -> Results:
            progress(Slices(5, 6, "slice 5"))
            self.seen.update(subject.description)
            self.seen["key"] = permissions(subject.description["monitor"]["key"])
            return found(subject)

        wanted: dict[str, Any] = {"directory": "/pools", "keyValue": {"mode": "Managed", "seed": "/seed"}}
        if self.machines:
            wanted |= {
                "provider": "bhyve",
                "virtualMachine": {"image": "freebsd", "storage": {"directory": "/vms"}},
                "network": {"addresses": "10.0.0.0/24", "machines": "10.1.0.0/24"},
            }
        pool = {
            **resource("JailPool", "main", wanted),
            "status": {"virtualMachines": [{"name": "main-vm-0", "image": "freebsd@ab"}]},
        }
        row = {
            "name": "main-0",
            "ordinal": 0,
            "host": self.where,
            "address": "127.0.0.1",
            "image": digest or image.digest,
        }
        subject = Subject({"name": "main-0", "store": "/there"}, [], pool, row)
        settings = SimpleNamespace(images=self.place / "images", runtime=self.place, shai=Path("/here/shai"))
        services = SimpleNamespace(settings=settings, cluster=None, leases=Leases(self.holder))
        generator = RemoteLoadGenerator(
            cast("LocalLoadGenerator", SimpleNamespace(run=run)),
            cast("Provider", self.host),
            cast("Services", services),
            authority.create(),
        )
        return await generator.run(subject, {}, self.tell, asyncio.Event())

    def tell(self, slices: Slices) -> None:
        self.told.append(slices)


@pytest.fixture
def world(tmp_path: Path) -> World:
    for file in images.REQUIRED:
        path = tmp_path / "images" / "default" / file
        path.parent.mkdir(parents=True)
        path.touch()
    return World(Host(), tmp_path)


async def test_twins_have_the_members_data_and_stores_that_nobody_can_guess(world: World) -> None:
    assert await world.measure() == Results({}, "a table")
    assert world.host.done == ALL
    one, two = (world.host.installed[f"main-0-{end}"] for end in ("b", "c"))
    for twin in (one, two):
        assert twin.data is not None
        assert (twin.data.source, twin.data.mode) == ("/pools/main-0/data", DataMode.SHARE)
        assert twin.key_value is not None
        assert (twin.key_value.seed, len(twin.key_value.open)) == ("/seed", 16)
    assert one.key_value != two.key_value
    assert 8443 < one.monitor_port < two.monitor_port
    assert world.seen["monitor"]["address"] == "127.0.0.1:8443"
    assert world.seen["twins"]["control"]["address"] == f"127.0.0.1:{two.monitor_port}"
    assert (world.seen["store"], world.seen["key"]) == ("", 0o600)
    assert world.told == [Slices(5, 6, "slice 5"), Slices(5, 6, "Remove on host rack: Stop")], "the count stays"
    assert list(world.place.glob("remote-*")) == [], "the operator's key and the people's are gone"


async def test_waiting_is_told_but_not_for_whom(world: World) -> None:
    world.holder = "JailPool secret, an installation"
    await world.measure()
    waits = "Waiting on host local: something else is done there"
    assert [slices.message for slices in world.told if slices.message == waits] == [waits] * 4
    assert not any("secret" in slices.message for slices in world.told)


async def test_twins_in_jails_are_in_the_machine_that_is_there(world: World) -> None:
    world.machines = True
    await world.measure()
    for twin in world.host.members.values():
        assert twin.twin_of == "main-0"
        assert twin.machine == VirtualMachine("main-vm-0", "10.1.0.1", "freebsd@ab"), (
            "no other image, which would replace it"
        )
    assert world.seen["program"] == "/here/shai", "the programs of the image are for FreeBSD"


WHAT = dict(zip(ALL[:3], ("twin main-0-b", "twin main-0-c", "the data of member main-0"), strict=True))


@pytest.mark.parametrize("failing", ALL[:3])
async def test_what_fails_leaves_nothing(world: World, failing: str) -> None:
    world.host.failing = failing
    with pytest.raises(MeasuringError, match=WHAT[failing]):
        await world.measure()
    assert world.host.done == [*ALL[: ALL.index(failing) + 1], *ALL[3:]]


@pytest.mark.parametrize("failing", ALL)
async def test_what_programs_of_the_host_said_is_in_the_log_only(
    world: World, failing: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.host.failing = failing
    with pytest.raises(MeasuringError, match="PlaybookFailed") as raised:
        await world.measure()
    assert LOG not in str(raised.value)
    assert LOG in caplog.text


async def test_settings_of_the_pool_are_in_the_log_only(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.where = "rack"
    says = r"^member main-0: ConfigurationError; the operator's log has more \(look there for member main-0\)$"
    with pytest.raises(MeasuringError, match=says):
        await world.measure()
    assert "host rack is no longer in spec.hosts" in caplog.text
    assert world.host.done == []


async def test_a_measurement_that_fails_or_is_cancelled_leaves_nothing(world: World) -> None:
    def fails(_: Subject) -> Results:
        raise MeasuringError("no keys.jsonl")

    with pytest.raises(MeasuringError, match=r"^no keys.jsonl$"):
        await world.measure(fails)

    def cancelled(_: Subject) -> Results:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await world.measure(cancelled)
    assert world.host.done == 2 * ALL


async def test_a_twin_that_stays_is_named(world: World) -> None:
    world.host.failing = "remove main-0-c"
    says = (
        r"twin main-0-c, which enforces nothing, is left on host local \(PlaybookFailed\); measuring the member again"
    )
    with pytest.raises(MeasuringError, match=says):
        await world.measure()

    def fails(_: Subject) -> Results:
        raise MeasuringError("no keys.jsonl")

    with pytest.raises(MeasuringError, match=f"no keys.jsonl; and {says}"):
        await world.measure(fails)


async def test_a_member_that_is_being_updated_is_not_measured(world: World) -> None:
    with pytest.raises(MeasuringError, match="the member still has the one before"):
        await world.measure(digest="another")
    assert world.host.done == []
