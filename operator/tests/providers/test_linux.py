# SPDX-License-Identifier: BSD-2-Clause
"""Members by SSH: a real sshd on a loopback port, and hosts that cannot be reached for various reasons."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers import directories
from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    Grounds,
    Host,
    Login,
    MemberConfiguration,
    Pool,
    Reason,
)
from shai_operator.providers.linux import LinuxProvider
from shai_operator.providers.playbooks import Playbooks
from testing.ports import free_port
from testing.waiting import until_async
from tests.providers import sshd
from tests.providers.support import processes_with, quiet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.providers.conftest import Site
    from tests.providers.sshd import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with sshd.serve(tmp_path) as running:
        yield running


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[LinuxProvider]:
    # The tests' interpreter has the package supervisor.
    playbooks = Playbooks(directory=site.base / "runs")
    yield LinuxProvider(playbooks, site.authority, python=sys.executable)
    await playbooks.close()


async def test_a_member_comes_and_goes(
    site: Site, server: Server, provider: LinuxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = site.base / "kept"
    kept.mkdir()
    monkeypatch.setattr(directories, "discard", lambda directory: shutil.move(directory, kept / directory.name))
    host = Host("rack-1", "127.0.0.1", server.login())
    members = provider.place(replace(site.pool, hosts=(host,)), [0], {}).members
    image = await asyncio.to_thread(lambda: site.image(**{"corpus/mail.txt": "of the image"}))
    configuration = MemberConfiguration(
        str(site.directory), image, provider.installer, data=Data("$(IMAGE)/corpus"), monitor_port=site.port
    )
    outcomes = await provider.provision(host, members, configuration, progress=quiet, cancel=asyncio.Event())
    assert outcomes["t-0"].failure is None
    assert outcomes["t-0"].changed
    assert len(processes_with(f"{site.directory}/images/{image.digest}/bin/shai")) == 1
    assert (site.directory / "t-0/data/mail.txt").read_text() == "of the image"
    assert server.login().private_key.splitlines()[2] not in has_kept(kept, {"ssh.key", "authority.key"})

    outcomes = await provider.remove(
        host, members, Grounds("t", str(site.directory)), progress=quiet, cancel=asyncio.Event()
    )
    assert outcomes["t-0"].failure is None
    assert not site.directory.exists()
    await until_async(lambda: not processes_with(str(site.base)), "the connection to the host ends with the run")


def has_kept(kept: Path, but: set[str]) -> str:
    """Return the content of all files that a run has written, except files of these names."""
    files = [path for path in kept.rglob("*") if path.is_file() and "ansible_collections" not in path.parts]
    assert but <= {path.name for path in files}
    return "".join(path.read_text(errors="replace") for path in files if path.name not in but)


@pytest.mark.parametrize(
    ("login", "reason", "says"),
    [
        pytest.param(
            lambda server: replace(server.login(), port=free_port()),
            Reason.HOST_UNREACHABLE,
            "Connection refused",
            id="closed port",
        ),
        pytest.param(
            lambda server: server.login(user="other-user"),
            Reason.AUTHENTICATION_FAILED,
            "authorized_keys",
            id="wrong key",
        ),
        pytest.param(
            lambda server: server.login(host="other-host"),
            Reason.HOST_KEY_MISMATCH,
            "another host key",
            id="other host key",
        ),
    ],
)
async def test_out_of_reach(
    server: Server, provider: LinuxProvider, login: Callable[[Server], Login], reason: Reason, says: str
) -> None:
    host = Host("rack-1", "127.0.0.1", login(server))
    members = provider.place(Pool("t", "127.0.10.0/24", (host,)), [0, 1], {}).members
    outcomes = await provider.remove(host, members, Grounds("t", "/nowhere"), progress=quiet, cancel=asyncio.Event())
    assert set(outcomes) == {"t-0", "t-1"}
    for outcome in outcomes.values():
        assert outcome.failure is not None
        assert outcome.failure.reason is reason
        assert says in outcome.failure.message
        assert "rack-1" in outcome.failure.message


GOOD = Login("root", "key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEx4 host")


@pytest.mark.parametrize(
    "host",
    [
        Host("a", "-oProxyCommand=x", GOOD),
        Host("a", "a b", GOOD),
        Host("a", "", GOOD),
        Host("a", "192.0.2.1", replace(GOOD, user="-l")),
        Host("a", "192.0.2.1", replace(GOOD, user="a b")),
        Host("a", "192.0.2.1", replace(GOOD, host_key="")),
        Host("a", "192.0.2.1", replace(GOOD, host_key="AAAAC3NzaC1lZDI1NTE5AAAAIEx4")),
        Host("a", "192.0.2.1", replace(GOOD, host_key=GOOD.host_key + "\n@cert-authority * ssh-rsa AAAA")),
        Host("a", "192.0.2.1"),
    ],
    ids=repr,
)
def test_what_would_be_an_option_or_another_line_is_refused(provider: LinuxProvider, host: Host) -> None:
    with pytest.raises(ConfigurationError, match="host a: "):
        provider.connection(host)
    provider.connection(Host("a", "fe80::1%eth0", GOOD))


def test_ssh_is_asked_for_no_password_and_no_unknown_host(provider: LinuxProvider) -> None:
    arguments = provider.connection(Host("a", "192.0.2.1", GOOD)).variables(Path("/run"))["ansible_ssh_args"]
    for option in ("StrictHostKeyChecking=yes", "PasswordAuthentication=no", "BatchMode=yes", "IdentitiesOnly=yes"):
        assert f"-o {option}" in arguments
