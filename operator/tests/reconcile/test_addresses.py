# SPDX-License-Identifier: BSD-2-Clause
"""One machine is one host, in whichever form its address is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shai_operator.control import poolspec
from shai_operator.reconcile import bridges
from shai_operator.reconcile.addresses import canonical
from tests.reconcile.builders import inventory, resource
from tests.reconcile.machine_world import spec

if TYPE_CHECKING:
    from shai_operator.reconcile.objects import Object

SAME = (
    ("2001:db8::7", "2001:DB8:0:0::7"),
    ("192.0.2.7", "::ffff:192.0.2.7"),
    ("rack-1.example", "Rack-1.EXAMPLE"),
    ("rack-1.example", "rack-1.example."),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_forms_of_one_address_are_one_host(one: str, other: str) -> None:
    def pool(name: str, address: str) -> Object:
        wanted = spec()
        return resource("JailPool", name, {**wanted, "hosts": [{**wanted["hosts"][0], "address": address}]})

    first, second = pool("a", one), pool("b", other)
    assert canonical(one) == canonical(other)
    (here,), (there,) = (poolspec.pool(each).hosts for each in (first, second))
    assert here.address == there.address, "locks are by this address"
    assert bridges.conflict(second, inventory(first, second))


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7", "fe80::1%vtnet0", "rack-1", "rack-1.example"])
def test_an_address_that_has_one_form_stays(address: str) -> None:
    assert canonical(address) == address
