# SPDX-License-Identifier: BSD-2-Clause
"""Provider bhyve without a host: its inventories against the roles' specifications, its connections, its surveys."""

from __future__ import annotations

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from images import descriptions
from shai_operator.providers import authority, events, process
from shai_operator.providers.bhyve import BhyveProvider
from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    DataMode,
    Grounds,
    Host,
    Image,
    ImageMissingError,
    KeyValue,
    Login,
    Member,
    MemberConfiguration,
    Reason,
)
from shai_operator.providers.machine_settings import MachineSettings
from shai_operator.providers.playbooks import Job, Report
from shai_operator.reconcile.surveys import VirtualMachine
from tests.providers.support import quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shai_operator.providers.bhyve_inventory import BhyveInventories

RUN = Path("/run/shai")
CHECKSUM = "ab" * 64
NAME = "freebsd-14.4-amd64"
HOSTILE = "a'b\"c\n{{ lookup('pipe', 'id') }} 😀"


def private_key() -> str:
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
        .decode()
    )


HOST = Host("rack-1", "192.0.2.1", Login("root", private_key(), "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEx4", 2222))
SETTINGS = MachineSettings(
    addresses="10.1.0.0/24",
    jails=2,
    members="10.0.0.0/25",
    memory_mebibytes=2048,
    gateway="10.1.0.254",
    storage=("dataset", "zroot/shai"),
    nameservers=("10.1.0.253",),
)
CONFIGURATION = MemberConfiguration(
    "/var/lib/shai",
    Image("freebsd", "/images/freebsd", "d" * 64),
    "1",
    data=Data("/srv/data"),
    key_value=KeyValue("/srv/seed"),
    variables=(("TEXT", "it's {{ 7 * 7 }}"),),
    runtimes=(("odd", ("/it's {{ 7 * 7 }}", "$(TEXT)")),),
    machines=SETTINGS,
)


def member(ordinal: int, image: str = f"{NAME}@{CHECKSUM}") -> Member:
    number = ordinal // 2
    machine = VirtualMachine(f"web-vm-{number}", f"10.1.0.{number + 1}", image)
    return Member("web", f"web-{ordinal}", ordinal, "rack-1", f"10.0.0.{ordinal + 1}", machine)


MEMBERS = [member(0), member(1), member(2)]
GROUNDS = Grounds("web", "/var/lib/shai", SETTINGS)


class Playbooks:
    """Records jobs, and answers with reports."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.statistics: dict[str, Any] = {}

    async def run(self, job: Job, *_: object) -> Report:
        self.jobs.append(job)
        record = events.Record(job.host, 1, job.guests)
        record.statistics = self.statistics
        return Report(record)


@pytest.fixture
def playbooks() -> Playbooks:
    return Playbooks()


@pytest.fixture
def provider(playbooks: Playbooks) -> BhyveProvider:
    return BhyveProvider(playbooks, authority.create())  # type: ignore[arg-type]


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text, object_hook=lambda found: found.get("__ansible_unsafe", found))["all"]
    return found


def entries(inventory: dict[str, Any], group: str) -> dict[str, Any]:
    found: dict[str, Any] = inventory["children"].get(group, {}).get("hosts", {})
    return found


def specifications(role: str) -> dict[str, dict[str, Any]]:
    text = (process.COLLECTION / "roles" / role / "meta" / "argument_specs.yml").read_text()
    return {entry: spec.get("options") or {} for entry, spec in yaml.safe_load(text)["argument_specs"].items()}


def variables(inventory: dict[str, Any]) -> Iterator[str]:
    """Return all names of variables for roles, with those that the playbooks themselves use left out."""
    own = {"jail_machine", "pool_vm_delete"}
    for scope in (
        inventory["vars"],
        *(entry for group in inventory["children"].values() for entry in group["hosts"].values()),
    ):
        yield from (name for name in scope if not name.startswith("ansible_") and name not in own)


ROLES = {
    "machine": ["bhyve_host"],
    "virtual_machines": ["pool_vm", "freebsd_guest"],
    "members": ["jail", "freebsd_member"],
}


def inventories(provider: BhyveProvider) -> BhyveInventories:
    return provider.inventories(HOST)


def test_the_roles_get_all_that_they_need_and_nothing_that_they_do_not_know(provider: BhyveProvider) -> None:
    writer = inventories(provider)
    provision = read(writer.provision(MEMBERS, CONFIGURATION, RUN))
    removal = read(writer.removal(MEMBERS, replace(GROUNDS, condemned=frozenset({"web-vm-1"})), RUN))
    reading = read(writer.reading(MEMBERS[0], GROUNDS, files=["a"], destination=Path("/x"), directory=RUN))
    survey = read(writer.survey([VirtualMachine("web-vm-0", "10.1.0.1")], SETTINGS, RUN))
    known = {
        option
        for roles in ROLES.values()
        for role in roles
        for spec in specifications(role).values()
        for option in spec
    }
    for inventory in (provision, removal, reading, survey):
        assert set(variables(inventory)) <= known
    for inventory, points in (
        (provision, dict.fromkeys(("bhyve_host", "pool_vm", "freebsd_guest", "jail", "freebsd_member"), "main")),
        (provision, {"freebsd_member": "image"}),
        (removal, {"bhyve_host": "tidy", "pool_vm": "remove", "jail": "remove", "freebsd_member": "remove"}),
        (reading, {"pool_vm": "known", "freebsd_member": "read"}),
        (survey, {"bhyve_host": "survey", "pool_vm": "known"}),
    ):  # fmt: skip
        for group, roles in ROLES.items():
            for entry in entries(inventory, group).values():
                for role in set(roles) & points.keys():
                    given = inventory["vars"] | entry
                    options = specifications(role)[points[role]]
                    assert {option for option, about in options.items() if about.get("required")} <= given.keys()


def test_an_inventory_says_what_the_pool_says(provider: BhyveProvider) -> None:
    inventory = read(inventories(provider).provision(MEMBERS, CONFIGURATION, RUN))
    shared = inventory["vars"]
    assert shared["pool_vm_image"]["checksum"] == {"algorithm": "sha512", "value": CHECKSUM}
    assert shared["bhyve_host_image"] == shared["pool_vm_image"]
    assert shared["bhyve_host_storage"] == shared["pool_vm_storage"] == {"dataset": "zroot/shai"}
    assert shared["bhyve_host_bridge_address"] == "10.1.0.254/24", "without an uplink the host is the router"
    assert shared["freebsd_member_requires"] == "CapsicumModule"
    assert shared["freebsd_guest_packages"] == ["redis"]
    assert shared["freebsd_member_variables"] == [{"name": "TEXT", "value": "it's {{ 7 * 7 }}"}]
    assert shared["freebsd_member_runtimes"] == [{"name": "odd", "paths": ["/it's {{ 7 * 7 }}", "$(TEXT)"]}]
    machines = entries(inventory, "virtual_machines")
    assert machines["web-vm-0"]["pool_vm_address"] == "10.1.0.1/24"
    assert machines["web-vm-1"]["freebsd_guest_members"] == ["10.0.0.3", "10.0.0.4"], "also those of other runs"
    jails = entries(inventory, "members")
    assert jails["web-2"]["jail_machine"] == "web-vm-1"
    assert jails["web-2"]["jail_address"] == "10.0.0.3/25"
    assert jails["web-2"]["ansible_ssh_args"] == machines["web-vm-1"]["ansible_ssh_args"]
    assert "jail_gateway" not in shared or shared["jail_gateway"] == ""


def test_a_pools_keys_log_in_beside_the_operators(provider: BhyveProvider) -> None:
    writer, more = inventories(provider), ("ssh-ed25519 AAAA alice", "ssh-ed25519 BBBB {{ 7 * 7 }}")
    own = read(writer.provision(MEMBERS, CONFIGURATION, RUN))["vars"]["pool_vm_authorized_keys"]
    assert len(own) == 1
    settings = replace(SETTINGS, authorized_keys=(*more, *own))
    shared = read(writer.provision(MEMBERS, replace(CONFIGURATION, machines=settings), RUN))["vars"]
    assert shared["pool_vm_authorized_keys"] == shared["freebsd_guest_authorized_keys"] == [*own, *more]
    before = CONFIGURATION.digest(MEMBERS[0])
    assert replace(CONFIGURATION, machines=settings).digest(MEMBERS[0]) != before, "machines that exist get them, too"
    assert "authorized_keys" not in SETTINGS.installed(), "pools without the field stay up to date"


def test_packages_of_an_image_are_for_its_machines(provider: BhyveProvider, tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    for name in ("shai-kmod-1.pkg", "shai-1.pkg", "README"):
        (tmp_path / "packages" / name).touch()
    configuration = replace(CONFIGURATION, image=replace(CONFIGURATION.image, path=str(tmp_path)))
    shared = read(inventories(provider).provision(MEMBERS, configuration, RUN))["vars"]
    assert [Path(file).name for file in shared["freebsd_guest_package_files"]] == ["shai-1.pkg", "shai-kmod-1.pkg"]


def test_a_twin_is_in_the_jail_of_its_member_and_has_its_data(provider: BhyveProvider) -> None:
    twin = replace(member(1), name="web-1-b", twin_of="web-1")
    shared = replace(CONFIGURATION, data=Data("/var/lib/shai/web-1/data", DataMode.SHARE), monitor_port=8444)
    provision = read(inventories(provider).provision([twin], shared, RUN))
    assert provision["vars"]["freebsd_member_data_share"] is True
    own = read(inventories(provider).provision([member(1)], CONFIGURATION, RUN))
    assert own["vars"]["freebsd_member_data_share"] is False
    (found,), (beside,) = (entries(inventory, "members").values() for inventory in (provision, own))
    different = {name for name in found if found[name] != beside[name]}
    assert different == {"freebsd_member_name"}, "the jail itself is not changed"
    different = {name for name in own["vars"] if own["vars"][name] != provision["vars"][name]}
    assert different == {"freebsd_member_data_source", "freebsd_member_data_share", "freebsd_member_port"}, (
        "nor is its virtual machine"
    )
    removal = entries(read(inventories(provider).removal([twin], GROUNDS, RUN)), "members")
    assert (removal["web-1-b"]["jail_name"], removal["web-1-b"]["freebsd_member_name"]) == ("web-1", "web-1-b")


async def test_only_twins_share_data(provider: BhyveProvider, playbooks: Playbooks, tmp_path: Path) -> None:
    shared = replace(CONFIGURATION, data=Data("/var/lib/shai/web-1/data", DataMode.SHARE))
    twin = replace(member(1), name="web-1-b", twin_of="web-1")
    for members in ([member(1)], [member(1), twin]):
        with pytest.raises(ConfigurationError, match="shares no file system"):
            await provider.provision(HOST, members, shared, progress=quiet, cancel=asyncio.Event())
    outcomes = await provider.provision(HOST, [twin], shared, progress=quiet, cancel=asyncio.Event())
    assert set(outcomes) == {"web-1-b"}
    assert playbooks.jobs == [], f"the image is not there ({tmp_path})"


def test_in_a_common_network_all_have_its_prefix_and_router(provider: BhyveProvider) -> None:
    settings = replace(SETTINGS, subnet="10.0.0.0/15", uplink="igb0")
    inventory = read(inventories(provider).provision(MEMBERS, replace(CONFIGURATION, machines=settings), RUN))
    assert entries(inventory, "members")["web-0"]["jail_address"] == "10.0.0.1/15"
    assert entries(inventory, "virtual_machines")["web-vm-0"]["pool_vm_address"] == "10.1.0.1/15"
    assert inventory["vars"]["jail_gateway"] == "10.1.0.254"
    assert inventory["vars"]["bhyve_host_bridge_address"] == "", "with an uplink the router is elsewhere"


def test_only_condemned_machines_are_destroyed(provider: BhyveProvider) -> None:
    place = replace(GROUNDS, condemned=frozenset({"web-vm-1", "old-vm-0"}))
    machines = entries(read(inventories(provider).removal(MEMBERS, place, RUN)), "virtual_machines")
    assert {name: entry["pool_vm_delete"] for name, entry in machines.items()} == {
        "web-vm-0": False,
        "web-vm-1": True,
        "old-vm-0": True,
    }


def test_texts_of_a_pool_are_never_templates(provider: BhyveProvider) -> None:
    configuration = replace(CONFIGURATION, data=Data(HOSTILE))
    text = inventories(provider).provision(MEMBERS, configuration, RUN)
    assert json.loads(text)["all"]["vars"]["freebsd_member_data_source"] == {"__ansible_unsafe": HOSTILE}


def test_a_machine_is_reached_through_its_host_with_known_keys_only(provider: BhyveProvider) -> None:
    writer = inventories(provider)
    entry = entries(read(writer.provision(MEMBERS, CONFIGURATION, RUN)), "virtual_machines")["web-vm-1"]
    words = shlex.split(entry["ansible_ssh_args"])
    assert "HostKeyAlias=shai-web-vm-1" in words
    (proxy,) = [word for word in words if word.startswith("ProxyCommand=")]
    assert proxy.endswith("-W [%h]:%p -p 2222 -l root 192.0.2.1")
    assert "-o HostKeyAlias=shai-rack-1" in proxy
    for option in ("StrictHostKeyChecking=yes", "PasswordAuthentication=no", "BatchMode=yes", "IdentitiesOnly=yes"):
        assert option in words
        assert f"-o {option}" in proxy
    assert (entry["ansible_user"], entry["ansible_host"]) == ("root", "10.1.0.2")
    assert writer.files["known_hosts"].startswith("shai-rack-1 ssh-ed25519 ")


def test_nothing_secret_is_in_an_inventory(provider: BhyveProvider) -> None:
    text = inventories(provider).provision(MEMBERS, CONFIGURATION, RUN)
    assert HOST.login is not None
    assert HOST.login.private_key.splitlines()[2] not in text
    assert "PRIVATE KEY" not in text


@pytest.mark.parametrize(
    "key", ["", "key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----"]
)
def test_a_key_that_cannot_be_read_is_refused_before_a_run(provider: BhyveProvider, key: str) -> None:
    assert HOST.login is not None
    with pytest.raises(ConfigurationError, match="without a passphrase"):
        provider.inventories(replace(HOST, login=replace(HOST.login, private_key=key)))


@pytest.mark.parametrize("mode", [DataMode.LINK, DataMode.SHARE])
async def test_a_jail_shares_no_files(provider: BhyveProvider, mode: DataMode) -> None:
    configuration = replace(CONFIGURATION, data=Data("/srv", mode))
    with pytest.raises(ConfigurationError, match="choose Copy"):
        await provider.provision(HOST, MEMBERS, configuration, progress=quiet, cancel=asyncio.Event())


def test_an_image_without_a_checksum_is_missing(provider: BhyveProvider) -> None:
    with pytest.raises(ImageMissingError, match="no description of that name"):
        provider.machine_image("no-such-image", SETTINGS)
    usable = [name for name in descriptions.names() if name.startswith("freebsd-") and "amd64" in name]
    unpinned = [name for name in usable if not descriptions.read(name)["checksum"].get("value")]
    for name in unpinned[:1]:
        with pytest.raises(ImageMissingError, match="no checksum is recorded"):
            provider.machine_image(name, SETTINGS)
    assert provider.machine_image(NAME, replace(SETTINGS, checksum=CHECKSUM)) == f"{NAME}@{CHECKSUM}"


@pytest.mark.parametrize("name", descriptions.names())
def test_only_images_that_machines_can_run_are_taken(provider: BhyveProvider, name: str) -> None:
    settings = replace(SETTINGS, checksum=CHECKSUM)
    if name.startswith("freebsd-") and "amd64" in name:
        assert provider.machine_image(name, settings) == f"{name}@{CHECKSUM}"
        return
    with pytest.raises(
        ImageMissingError, match=r"choose an image (of freebsd|for amd64) in virtualMachine.image"
    ) as found:
        provider.machine_image(name, settings)
    debian = name.startswith("debian-")
    assert found.value.reason is (Reason.IMAGE_MISSING if debian else Reason.ARCHITECTURE_MISMATCH)
    assert ("is debian" if debian else "runs amd64 machines only for now") in str(found.value)


# Surveys.


async def survey(provider: BhyveProvider) -> Any:
    return await provider.survey(HOST, [], SETTINGS, cancel=asyncio.Event())


def row(name: str, state: str, /, **mark: Any) -> dict[str, str]:
    return {"name": name, "state": state, "mark": json.dumps(mark) if mark else ""}


def host_with(*machines: dict[str, str], free: str = "5000") -> dict[str, Any]:
    return {"free_memory_mebibytes": free, "version": "14.4-RELEASE", "virtual_machines": list(machines)}


async def test_a_survey_tells_own_machines_from_others(provider: BhyveProvider, playbooks: Playbooks) -> None:
    owner = inventories(provider).owner
    machine = {"pool": "web", "image": CHECKSUM, "memory_mebibytes": 2048}
    playbooks.statistics = {
        "bhyve_host": host_with(
            row("web-vm-0", "running", name="web-vm-0", owner=owner, **machine),
            row("web-vm-1", "failed (4)", name="web-vm-1", owner=owner, **machine),
            row("web-vm-2", "stopped", name="web-vm-2", owner="f" * 64, **machine),
            row("web-vm-3", "unfinished"),
        ),
        "bhyve_machines": {"web-vm-0": {"version": "14.4-RELEASE", "jails": ["web-1", "web-0"], "module": "1"}},
    }
    found = await survey(provider)
    assert (found.reached, found.free_memory_mebibytes, found.version) == (True, 5000, "14.4-RELEASE")
    assert list(found.own) == ["web-vm-0", "web-vm-1"]
    assert found.own["web-vm-0"].jails == ("web-0", "web-1")
    assert [one.state for one in found.machines] == ["Running", "Broken", "Stopped", "Broken"]
    assert found.own["web-vm-1"].message == "failed (4)"
    assert found.machines[3].pool == ""
    (job,) = playbooks.jobs
    assert (job.playbook, job.looks, job.time_limit_seconds) == ("bhyve_survey.yml", True, 300)


async def test_marks_that_cannot_be_read_and_copies_are_nobodys(provider: BhyveProvider, playbooks: Playbooks) -> None:
    own = row("web-vm-0", "running", name="web-vm-0", owner=inventories(provider).owner, pool="web")
    names = ["web-vm-0.bak", "web-vm-1", "web-vm-2", "web-vm-3", "web-vm-4", HOSTILE]
    marks = [own["mark"], "", "[]", "[" * 4096, '{"name": "web-vm-4", "owner"', '{"name": ["x"], "pool": {"a": 1}}']
    others = [{"name": name, "state": "failed", "mark": mark} for name, mark in zip(names, marks, strict=True)]
    playbooks.statistics = {"bhyve_host": host_with(own, *others)}
    found = await survey(provider)
    assert [(name, machine.state) for name, machine in found.own.items()] == [("web-vm-0", "Running")]
    assert [(machine.name, machine.pool) for machine in found.machines[1:]] == [(name, "") for name in names]


@pytest.mark.parametrize("free", ["-1", str(10**99)])
async def test_a_host_that_lies_about_its_memory_is_not_used(
    provider: BhyveProvider, playbooks: Playbooks, free: str
) -> None:
    playbooks.statistics = {"bhyve_host": host_with(free=free)}
    found = await survey(provider)
    assert (found.reached, found.free_memory_mebibytes) == (False, 0)
    assert f"{free} MiB of free memory" in found.message


async def test_a_survey_that_says_nothing_has_failed(provider: BhyveProvider) -> None:
    found = await survey(provider)
    assert (found.reached, found.reason) == (False, Reason.PLAYBOOK_FAILED)


# Failures.


def test_a_machine_out_of_reach_is_not_its_host() -> None:
    record = events.Record(HOST, 1, {"web-vm-0": "web-vm-0", "web-0": "web-vm-0"})
    for entry in ("web-0", "machine"):
        text = "ssh: connect to host 10.1.0.1 port 22: Operation timed out"
        record.observe({"event": "runner_on_unreachable", "event_data": {"host": entry, "res": {"msg": text}}})
    assert record.failures["web-0"].reason is Reason.GUEST_UNREACHABLE
    assert "virtual machine web-vm-0 on host rack-1" in record.failures["web-0"].message
    assert record.failures["machine"].reason is Reason.HOST_UNREACHABLE


async def test_members_of_different_images_are_different_runs(
    provider: BhyveProvider, playbooks: Playbooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shai_operator.providers.installation._image_failure", lambda _: None)
    other = "freebsd-15.1-amd64@" + "cd" * 64
    members = [member(0, other), member(2), member(1, other), member(4, "nothing@" + CHECKSUM)]
    outcomes = await provider.provision(HOST, members, CONFIGURATION, progress=quiet, cancel=asyncio.Event())
    images = [read(job.inventory(RUN))["vars"]["pool_vm_image"]["checksum"]["value"] for job in playbooks.jobs]
    assert sorted(images) == [CHECKSUM, "cd" * 64]
    failed = {name: outcome.failure for name, outcome in outcomes.items() if outcome.failure}
    assert failed.keys() == {"web-4"}
    assert {job.time_limit_seconds for job in playbooks.jobs} == {3600}
    assert failed["web-4"].reason is Reason.IMAGE_MISSING
