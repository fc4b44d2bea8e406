# SPDX-License-Identifier: BSD-2-Clause
"""Bridges of pools and pairs of jails: nothing of the host's or of another pool's is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.standins import world

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.providers.standins import World


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    created.interface(
        "em0",
        "groups: em",
        "inet 198.51.100.7 netmask 0xffffff00 broadcast 198.51.100.255",
        "inet6 fe80::1%em0 prefixlen 64 scopeid 0x1",
        "inet6 2001:db8::7 prefixlen 64",
    )
    return created


def bridge(
    made: World, pool: str = "web", address: str = "", uplink: str = "", name: str = "shb1", **added: str
) -> subprocess.CompletedProcess[str]:
    return made.run(made.script("bhyve_host", "bridge.sh"), name, pool, address, uplink, **added)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stderr.startswith("BridgeConflict: ")
    return done.stderr


def test_a_bridge_of_its_own_touches_no_interface(made: World) -> None:
    before = (made.place / "interfaces/em0").read_text()
    done = bridge(made, address="192.0.2.1/24")
    assert done.stdout.splitlines() == ["made bridge shb1", "gave bridge shb1 address 192.0.2.1/24"]
    assert (made.place / "interfaces/em0").read_text() == before
    assert bridge(made, address="192.0.2.1/24").stdout == ""


def test_an_uplink_keeps_its_addresses(made: World) -> None:
    before = (made.place / "interfaces/em0").read_text()
    assert "joined em0 to bridge shb1" in bridge(made, uplink="em0").stdout
    assert (made.place / "interfaces/em0").read_text() == before
    assert bridge(made, uplink="em0").stdout == ""


def test_an_uplink_that_loses_an_address_leaves_the_bridge(made: World) -> None:
    assert "lost an address" in refused(bridge(made, uplink="em0", LOSES="em0"))
    assert "member: em0" not in (made.place / "interfaces/shb1").read_text()


def test_an_uplink_with_addresses_is_refused_where_members_may_not_have_them(made: World) -> None:
    assert "member_ifaddrs=1" in refused(bridge(made, uplink="em0", IFADDRS="0"))
    assert "member: em0" not in (made.place / "interfaces/shb1").read_text()
    made.interface("em1", "groups: em")
    assert bridge(made, uplink="em1", IFADDRS="0").returncode == 0


def test_conflicts(made: World) -> None:
    bridge(made, uplink="em0")
    assert "is not the bridge of this pool" in refused(bridge(made, pool="other"))
    assert "already a member of bridge shb1" in refused(bridge(made, pool="other", uplink="em0", name="shb2"))
    assert "no interface em9" in refused(bridge(made, uplink="em9"))


@pytest.mark.parametrize(
    ("address", "there"),
    [
        ("198.51.100.7/24", "198.51.100.7/24 of interface em0"),
        ("198.51.100.254/24", "198.51.100.7/24 of interface em0"),
        ("198.51.100.129/25", "198.51.100.7/24 of interface em0"),
        ("198.51.0.1/16", "198.51.100.7/24 of interface em0"),
        ("2001:db8::ffff/112", "2001:db8::7/64 of interface em0"),
        ("2001:DB8:0:0:1::1/64", "2001:db8::7/64 of interface em0"),
        ("2001:db8:0:1::1/48", "2001:db8::7/64 of interface em0"),
        ("198.51.101.1/24", ""),
        ("2001:db8:0:1::1/64", ""),
        ("fd00::1/64", ""),
    ],
)
def test_a_network_that_an_interface_of_the_host_has_is_refused(made: World, address: str, there: str) -> None:
    done = bridge(made, address=address)
    if there:
        assert f"address {address} is in a network with {there}: choose another" in refused(done)
        assert not (made.place / "interfaces/shb1").exists()
    else:
        assert f"gave bridge shb1 address {address}" in done.stdout


@pytest.mark.parametrize("address", ["192.0.2.1/0", "192.0.2.1", "192.0.2.1/", "fd00::1/0", "192.0.2.1/x"])
def test_an_address_without_a_network_is_refused(made: World, address: str) -> None:
    assert "has no length of its network" in refused(bridge(made, address=address))


def test_a_bridge_that_has_its_address_stays_when_another_interface_gets_one_of_its_network(made: World) -> None:
    bridge(made, address="192.0.2.1/24")
    made.interface("em1", "groups: em", "inet 192.0.2.7 netmask 0xffffff00")
    assert bridge(made, address="192.0.2.1/24").returncode == 0


def pair(made: World, *words: str) -> subprocess.CompletedProcess[str]:
    return made.run(made.script("jail", "epair.sh"), *words)


def test_a_pair_is_made_anew_and_goes(made: World) -> None:
    bridge(made)
    for _ in range(2):
        assert pair(made, "up", "sh01234567", "shb1", "web-0").returncode == 0
    names = {file.name for file in (made.place / "interfaces").iterdir()}
    assert {"sh01234567a", "sh01234567b"} <= names
    assert not any(name.startswith("epair") for name in names)
    assert "description: shai jail web-0" in (made.place / "interfaces/sh01234567a").read_text()
    assert pair(made, "down", "sh01234567", "web-0").returncode == 0
    assert not (made.place / "interfaces/sh01234567a").exists()
    assert pair(made, "down", "sh01234567", "web-0").returncode == 0


def test_a_pair_of_another_jail_stays(made: World) -> None:
    bridge(made)
    pair(made, "up", "sh01234567", "shb1", "web-0")
    assert "is not jail web's" in refused(pair(made, "up", "sh01234567", "shb1", "web"))
    assert "is not jail eb-0's" in refused(pair(made, "down", "sh01234567", "eb-0"))
    assert (made.place / "interfaces/sh01234567a").exists()


def test_a_pair_without_a_bridge_does_not_stay(made: World) -> None:
    assert pair(made, "up", "sh01234567", "none", "web-0").returncode != 0
    assert [file.name for file in (made.place / "interfaces").iterdir()] == ["em0"]
