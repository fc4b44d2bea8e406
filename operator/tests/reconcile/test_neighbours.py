# SPDX-License-Identifier: BSD-2-Clause
"""What pools leave each other of their hosts' memory."""

from __future__ import annotations

from typing import Any

from shai_operator.control import poolspec
from shai_operator.providers.machine_placement import place
from shai_operator.reconcile import neighbours
from shai_operator.reconcile.objects import Inventory
from shai_operator.reconcile.surveys import HostSurvey
from tests.reconcile.builders import genuine, resource
from tests.reconcile.machine_world import spec


def pool(called: str, network: int, *, rows: tuple[str, ...] = (), **changes: Any) -> Any:
    ranges = {"addresses": f"10.{network}.0.0/24", "machines": f"10.{network + 1}.0.0/24"}
    hosts = [{"name": f"host-of-{called}", "address": "192.0.2.1", "maxMembers": 8}]
    status = {"virtualMachines": [{"name": row, "host": f"host-of-{called}", "jails": 2} for row in rows]}
    return resource("JailPool", called, spec(hosts=hosts, network=ranges, **changes), status)


def known(*pools: Any) -> Inventory:
    inventory = Inventory(genuine)
    for one in pools:
        inventory.put(one)
    return inventory


def test_machines_of_other_pools_are_counted_by_the_address_of_their_host() -> None:
    small = {"image": "freebsd-14.4-amd64", "memoryMebibytes": 300, "storage": {"directory": "/srv"}}
    web = pool("web", 10, rows=("web-vm-0",))
    other = pool("other", 20, rows=("other-vm-0",), virtualMachine=small)
    elsewhere = pool("elsewhere", 30, rows=("elsewhere-vm-0",))
    elsewhere["spec"]["hosts"][0]["address"] = "192.0.2.2"
    inventory = known(web, other, elsewhere, resource("JailPool", "plain", {"provider": "local"}))
    placed = {"other": {"other-vm-1": "host-of-other"}, "web": {"web-vm-7": "host-of-web"}}
    found = neighbours.promised(web, inventory, placed)
    assert found == {
        "192.0.2.1": {"other-vm-0": 300, "other-vm-1": 300},
        "192.0.2.2": {"elsewhere-vm-0": 1000},
    }


def test_a_pool_that_must_not_be_there_keeps_nothing_from_others() -> None:
    web, other = pool("web", 10), pool("younger", 10, rows=("younger-vm-0",))
    assert neighbours.promised(web, known(web, other), {}) == {}


def test_two_pools_that_are_placed_by_one_survey_do_not_both_take_its_memory() -> None:
    """A host with room for one machine: the second pool waits, whether the first one's status is written or not."""
    one, two = pool("one", 10), pool("two", 20)
    survey = HostSurvey(None, 1500)  # type: ignore[arg-type]
    inventory = known(one, two)
    chosen: dict[str, dict[str, str]] = {}
    for each in (one, two):
        called = each["metadata"]["name"]
        settings = poolspec.existing_machines(each)
        promised = neighbours.promised(each, inventory, chosen)
        placed = place(poolspec.pool(each, {f"host-of-{called}": survey}, promised), settings, [0, 1], {})
        chosen[called] = {member.machine.name: member.host for member in placed.members if member.machine}
    assert chosen == {"one": {"one-vm-0": "host-of-one"}, "two": {}}
