# SPDX-License-Identifier: BSD-2-Clause
"""Two members on a host that runs systemd, installed by SSH: their units, sessions, restarts, changes, and the removal.

One test, because runs are slow: each step starts where the previous one has ended.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loadgen.datasets import crowd, population
from loadgen.datasets.commands import SEED_COMMANDS
from loadgen.driving.protocol import FrontEnd, search_once
from loadgen.stacks import light, manifests
from shai_operator.providers import images
from shai_operator.providers.interface import Data, Grounds, Host, KeyValue, MemberConfiguration
from shai_operator.providers.linux import LinuxProvider
from shai_operator.providers.playbooks import Playbooks
from testing.cluster import ROOT
from testing.waiting import until
from tests.providers import systemd_host
from tests.providers.support import quiet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from loadgen.datasets.population import Population
    from shai_operator.providers.interface import Image, Member, Outcome
    from tests.providers.conftest import Site
    from tests.providers.systemd_host import SystemdHost

LACKING = systemd_host.lacking()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"no host with systemd can be made here: {LACKING}")
ADDRESS = "127.0.0.1"
DIRECTORY = "/srv/shai"
"""The pool's, in the container."""
PIPELINE, PORT = "syse", 8640
BOUNDS = {"monitor": 0x802805FF, "store": 0}
"""The sets of capabilities beyond which no process of a unit gets any (CapBnd in proc(5)): those of docs/providers.md,
by their numbers in linux/capability.h, and SYS_RESOURCE where a machine has it."""
SYS_RESOURCE = 1 << 24
HIDDEN = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is made there
"""What units have of their own, empty: PrivateTmp."""


@pytest.fixture
def machine() -> Iterator[SystemdHost]:
    with tempfile.TemporaryDirectory(prefix="shai-") as name, systemd_host.boot(Path(name), ADDRESS) as booted:
        yield booted


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[LinuxProvider]:
    playbooks = Playbooks(directory=site.base / "runs")
    yield LinuxProvider(playbooks, site.authority)
    await playbooks.close()


class Life:
    """The pool's members on the host, for the steps."""

    def __init__(self, site: Site, provider: LinuxProvider, machine: SystemdHost) -> None:
        self.provider, self.machine = provider, machine
        self.host = Host("rack-1", ADDRESS, machine.server.login())
        self.members = provider.place(replace(site.pool, hosts=(self.host,)), [0, 1], {}).members

    async def provision(self, configuration: MemberConfiguration) -> Mapping[str, Outcome]:
        outcomes = await self.provider.provision(
            self.host, self.members, configuration, progress=quiet, cancel=asyncio.Event()
        )
        assert [outcome.failure.message for outcome in outcomes.values() if outcome.failure] == []
        return outcomes

    def shai(self, member: Member, *arguments: str, said: str = "", check: bool = True) -> str:
        """Run the member's `shai` on the host."""
        directory = f"{DIRECTORY}/{member.name}"
        command = [f"{directory}/image/bin/shai", "--socket", f"{directory}/run/monitor.sock", *arguments]
        return self.machine.run(*command, said=said, check=check)

    def shown(self, member: Member, service: str, name: str) -> str:
        """Return a property of the unit of a member's service."""
        return self.machine.run("systemctl", "show", "--value", "--property", name, unit(member, service)).strip()

    def left(self) -> str:
        """Return the paths of all units and directories that the members have."""
        return self.machine.run("find", "/etc/systemd/system", "/srv", "-name", "shai-t-*", "-o", "-name", "shai")


def unit(member: Member, service: str) -> str:
    return f"shai-{member.name}-{service}.service"


def image_of(site: Site) -> Image:
    """Make an image of all programs, with data for a few users."""
    directory = site.base / "images/all"
    shutil.copytree(ROOT / "build/images/default", directory)
    crowd.make(directory / "data", crowd.Crowd(users=4, hubs=2))
    (directory / "data/keys.jsonl").chmod(0o600)
    return images.read(site.base / "images", "all")


def changed(image: Image) -> Image:
    """Add a file to an image."""
    Path(image.path, "more.txt").write_text("another image")
    return images.read(Path(image.path).parent, image.name)


async def test_life_under_systemd(site: Site, machine: SystemdHost, provider: LinuxProvider) -> None:
    life = Life(site, provider, machine)
    image = await asyncio.to_thread(image_of, site)
    people = population.load(Path(image.path) / "data")
    configuration = MemberConfiguration(
        DIRECTORY,
        image,
        provider.installer,
        data=Data("$(IMAGE)/data"),
        key_value=KeyValue(f"$(IMAGE)/data/{SEED_COMMANDS}"),
        variables=(("SYSE", "$(IMAGE)/syse"), ("KEYS", "$(DATA)/facts/population.jsonl")),
        runtimes=tuple((name, tuple(paths)) for name, paths in light.RUNTIMES.items()),
        monitor_port=site.port,
    )
    outcomes = await life.provision(configuration)
    assert all(outcome.changed for outcome in outcomes.values())
    assert life.left().count("shai") > len(life.members)
    await asyncio.to_thread(serves_sessions, life, people)
    has_few_rights(life)
    comes_back_when_killed(life)
    await asyncio.to_thread(searches, life, people)

    outcomes = await life.provision(configuration)
    assert not any(outcome.changed for outcome in outcomes.values())

    second = await asyncio.to_thread(changed, image)
    outcomes = await life.provision(replace(configuration, image=second))
    assert all(outcome.changed for outcome in outcomes.values())
    for member in life.members:
        assert second.digest in machine.run("cat", f"/proc/{life.shown(member, 'monitor', 'MainPID')}/cmdline")

    outcomes = await provider.remove(
        life.host, life.members, Grounds("t", DIRECTORY), progress=quiet, cancel=asyncio.Event()
    )
    assert [outcome.failure for outcome in outcomes.values() if outcome.failure] == []
    assert life.left() == ""


def serves_sessions(life: Life, people: Population) -> None:
    documents = light.derive(manifests.read(ROOT / "crds/examples/syse"), PIPELINE)
    for member in life.members:
        life.shai(member, "apply", "-f", "-", said="\n---\n".join(json.dumps(entry) for entry in documents))
        life.shai(member, "analyze", "--pipeline", PIPELINE)
        for task in (light.ENGINE, light.FRONT_END):
            life.shai(member, "task", "start", PIPELINE, task)
        assert "enforcement full" in life.shai(member, "status")
        [pipeline] = json.loads(life.shai(member, "status", "--output", "json"))["pipelines"]
        users = {pipeline["user"], *(task["user"] for task in pipeline["tasks"])}
        assert len(users) == 1 + len(pipeline["tasks"]), "each task has a user of its own, and their files another"
    searches(life, people)


def searches(life: Life, people: Population) -> None:
    """Log in to each member as two users; each sees documents."""
    for member in life.members:
        front_end = FrontEnd.dialled((member.address, PORT), PIPELINE)
        for person in people.people[:2]:
            answer = search_once(front_end, person, people.queries[0], 10)
            assert answer["results"], answer


def has_few_rights(life: Life) -> None:
    """The services have no capability that they do not need, and get none; test_systemd.py judges their units."""
    for service, bound in BOUNDS.items():
        status = life.machine.run("cat", f"/proc/{life.shown(life.members[0], service, 'MainPID')}/status")
        said = dict(line.split(":\t", 1) for line in status.splitlines())
        assert int(said["CapBnd"], 16) & ~SYS_RESOURCE == bound
        assert said["NoNewPrivs"] == "1"
        assert said["Seccomp"] == "2", "system calls are filtered"
        sees_little(life, life.shown(life.members[0], service, "MainPID"))


def sees_little(life: Life, process: str) -> None:
    """The file system is read-only but for the member's directory, and /tmp, /dev and /proc are a service's own."""
    mounts = {}
    for line in life.machine.run("cat", f"/proc/{process}/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        mounts[before.split()[4]] = {*before.split()[5].split(","), *after.split()[2].split(","), after.split()[0]}
    assert "ro" in mounts["/"]
    assert "ro" in mounts["/root"], "ProtectHome"
    assert "rw" in mounts[f"{DIRECTORY}/{life.members[0].name}"]
    assert "hidepid=invisible" in mounts["/proc"]
    assert "ro" in mounts["/proc/sys"], "ProtectKernelTunables"
    assert "tmpfs" in mounts["/dev"], "PrivateDevices"
    hidden = life.machine.run("nsenter", "--target", process, "--mount", "ls", "-A", *HIDDEN)
    assert hidden.split() == [f"{path}:" for path in HIDDEN], hidden


def comes_back_when_killed(life: Life) -> None:
    member = life.members[0]
    before = life.shown(member, "monitor", "MainPID")
    life.machine.run("systemctl", "kill", "--signal=KILL", unit(member, "monitor"))
    until(lambda: life.shown(member, "monitor", "MainPID") not in {"0", before}, "systemd starts the monitor again")
    until(lambda: "ready" in life.shai(member, "status", check=False), "the monitor is ready again")
    for task in (light.ENGINE, light.FRONT_END):
        life.shai(member, "task", "start", PIPELINE, task)
