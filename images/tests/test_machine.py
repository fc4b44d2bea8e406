# SPDX-License-Identifier: BSD-2-Clause
"""What a virtual machine gets of its pool, and what is refused."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from images import machine
from images.errors import ImageError
from images.machine import HostKey
from images.tests.conftest import openssh

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "a.b",
    "x" * 64,
    'a"b',
    "a'b",
    "a\nb",
    "a\n",
    "a: b",
    "{{ 7 * 7 }}",
    "{% include '/etc/passwd' %}",
    "- a",
    "*a",
    "!!python/object",
    "é",
    "\U0001f600",
    "a\u2028b",
    "a\u202eb",
    "",
    "-a",
    "a" * 65536,
)


def test_a_machine_has_its_place_in_the_pool(pool: dict[str, Any], public_key: str, host_key: HostKey) -> None:
    first = machine.first_boot(pool, 0, "nuageinit", [public_key], host_key)
    last = machine.first_boot(pool, 124, "nuageinit", [public_key], host_key)
    assert (first["hostname"], last["hostname"]) == ("example-vm-0", "example-vm-124")
    assert first["network"]["address"] == "198.51.100.129/25"
    assert last["network"]["address"] == "198.51.100.253/25"
    assert first["network"]["mac"] != last["network"]["mac"]


def test_an_ethernet_address_is_local_and_stays() -> None:
    assert machine.mac("example-vm-0") == machine.mac("example-vm-0")
    assert int(machine.mac("example-vm-0").split(":")[0], 16) & 0b11 == 0b10, "locally administered, and of one machine"


def test_a_range_of_ipv6_addresses(pool: dict[str, Any], public_key: str, host_key: HostKey) -> None:
    pool["spec"]["network"] = {"machines": "2001:db8::/64", "gateway": "2001:DB8:0::ff"}
    made = machine.first_boot(pool, 0, "cloud-init", [public_key], host_key)["network"]
    assert (made["address"], made["gateway"], made["nameservers"]) == ("2001:db8::1/64", "2001:db8::ff", [])


def test_a_subnet_has_the_gateway_and_says_the_prefix(pool: dict[str, Any], public_key: str, host_key: HostKey) -> None:
    pool["spec"]["network"] = {
        "machines": "198.51.100.128/25",
        "subnet": "198.51.100.0/24",
        "gateway": "198.51.100.126",
    }
    made = machine.first_boot(pool, 0, "nuageinit", [public_key], host_key)["network"]
    assert (made["address"], made["gateway"]) == ("198.51.100.129/24", "198.51.100.126")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != ""])
def test_a_name_that_makes_no_host_name_is_refused(
    pool: dict[str, Any], public_key: str, host_key: HostKey, name: str
) -> None:
    pool["metadata"]["name"] = name
    with pytest.raises(ImageError, match="no name of a virtual machine"):
        machine.first_boot(pool, 0, "nuageinit", [public_key], host_key)


@pytest.mark.parametrize("field", ["machines", "gateway", "nameservers"])
@pytest.mark.parametrize(
    "value", [*(value for value in HOSTILE if value), "fe80::1%a\nb", 'fe80::1%"', "198.51.100.1\n", 5, {}]
)
def test_an_address_that_is_none_is_refused(
    pool: dict[str, Any], public_key: str, host_key: HostKey, field: str, value: object
) -> None:
    pool["spec"]["network"][field] = [value] if field == "nameservers" else value or [1]
    with pytest.raises(ImageError, match=f"spec.network.{field}"):
        machine.first_boot(pool, 0, "nuageinit", [public_key], host_key)


@pytest.mark.parametrize(
    ("network", "number", "message"),
    [
        ({"machines": "198.51.100.0/24"}, 254, "has addresses for 254 virtual machines, and 254"),
        ({"machines": "198.51.100.0/24"}, -1, "no name of a virtual machine|gets none"),
        ({"machines": "198.51.100.0/24", "gateway": "192.0.2.1"}, 0, "is not in 198.51.100.0/24"),
        ({"machines": "198.51.100.0/24", "gateway": "198.51.100.1"}, 0, "is the address of virtual machine 0"),
        ({"machines": "198.51.100.7/24"}, 0, "has host bits set"),
        ({"machines": "198.51.100.0/24", "nameservers": ["192.0.2.1"] * 4}, 0, "at most 3"),
        ({}, 0, "spec.network.machines None is no range"),
        ({"machines": "198.51.100.0/24", "subnet": "all"}, 0, "spec.network.subnet 'all' is no range"),
        ({"machines": "198.51.100.0/24", "nameservers": 5}, 0, "nameservers is 5; give a list"),
        (5, 0, "spec.network is 5"),
    ],
)
def test_a_network_without_room_is_refused(
    pool: dict[str, Any], public_key: str, host_key: HostKey, network: object, number: int, message: str
) -> None:
    pool["spec"]["network"] = network
    with pytest.raises(ImageError, match=message):
        machine.first_boot(pool, number, "nuageinit", [public_key], host_key)


@pytest.mark.parametrize(
    "change", [{"kind": "Pool"}, {"spec": {"provider": "linux"}}, {"spec": None}, {"spec": "x"}, {"kind": None}]
)
def test_another_object_is_refused(
    pool: dict[str, Any], public_key: str, host_key: HostKey, change: dict[str, Any]
) -> None:
    with pytest.raises(ImageError, match="no JailPool with provider bhyve"):
        machine.first_boot({**pool, **change}, 0, "nuageinit", [public_key], host_key)


def test_public_keys_are_read_line_by_line() -> None:
    first, second = openssh()[1], openssh()[1] + " bob"
    assert machine.authorized_keys(f"# ours\n\n{first}\r\n  {second}\n") == [first, second]


@pytest.mark.parametrize(
    "line",
    [
        'command="/bin/sh" {key}',
        'environment="LD_PRELOAD=/tmp/x" {key}',
        "restrict,{key}",
        "cert-authority {key}",
        "{key} é",
        "{key} \u202e",
        "{key}\x00",
        "{key}\x0bssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-ed25519",
        "ssh-rsa {body}",
        "ssh-dss {body}",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        '"; rm -rf /',
        "{{ 7 }}",
    ],
)
def test_a_line_that_is_no_plain_key_is_refused(line: str) -> None:
    key = openssh()[1]
    hostile = line.replace("{key}", key).replace("{body}", key.split(" ")[1])
    with pytest.raises(ImageError, match="line 2 of the public keys"):
        machine.authorized_keys(f"{key}\n{hostile}\n")


def test_a_certificate_is_refused(tmp_path: Path) -> None:
    """A certificate's line is a key with options of its own."""
    for name in ("authority", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    signing: list[str | Path] = [
        "ssh-keygen",
        "-q",
        "-s",
        tmp_path / "authority",
        "-I",
        "user",
        "-O",
        "force-command=/bin/sh",
    ]
    subprocess.run([*signing, tmp_path / "user.pub"], check=True)
    with pytest.raises(ImageError, match="begins with 'ssh-ed25519-cert-v01"):
        machine.authorized_keys((tmp_path / "user-cert.pub").read_text())
    assert machine.authorized_keys((tmp_path / "user.pub").read_text())


@pytest.mark.parametrize("text", ["", "\n\n", "# none\n"])
def test_a_machine_that_nobody_could_enter_is_refused(text: str) -> None:
    with pytest.raises(ImageError, match="nobody could log in"):
        machine.authorized_keys(text)


def test_a_host_key_has_its_public_half() -> None:
    private, public = openssh()
    assert machine.host_key(private) == HostKey(private, public)
    assert machine.host_key(private.rstrip("\n")) == HostKey(private, public)


def test_a_host_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    encrypted = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", encrypted], check=True)
    of_rsa = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    for text in (encrypted.read_text(), of_rsa.decode(), "", openssh()[1], "-----BEGIN OPENSSH PRIVATE KEY-----\n"):
        with pytest.raises(ImageError, match="ssh-keygen -q -t ed25519 -N ''"):
            machine.host_key(text)
