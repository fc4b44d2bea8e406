# SPDX-License-Identifier: BSD-2-Clause
"""Orders as lines, and how processes share them."""

from __future__ import annotations

from loadgen.datasets.population import Person
from loadgen.driving.beside import Desk, Document, Interests
from loadgen.driving.orders import Order
from loadgen.phases import level

DESK = Desk("http://127.0.0.1:2", "desk:2", (Person("erin", bytes(32), "us"),), (Document(7, "/a", "ä"),))
INTERESTS = Interests("http://127.0.0.1:3", "interests:3", 4, ("moon",), {"Umbrellas": "weather"})
ORDER = Order(
    "http://127.0.0.1:1", "syse", "search:1", 8, 2.0, 5, 1,
    phases=(level("all", 1.0, 1.0),), desk=DESK, interests=INTERESTS,
)  # fmt: skip


def test_an_order_is_read_as_it_was_written() -> None:
    assert Order.read(ORDER.plain()) == ORDER
    plain = Order("http://127.0.0.1:1", "syse", "", 1, 1.0, 1, 1)
    assert Order.read(plain.plain()) == plain


def test_what_is_done_beside_searches_is_done_once() -> None:
    shares = ORDER.shares(3)
    assert [share.users for share in shares] == [2, 2, 1]
    assert [share.desk for share in shares] == [DESK, None, None]
    assert [share.interests for share in shares] == [INTERESTS, None, None]
