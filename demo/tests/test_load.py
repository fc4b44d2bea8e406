# SPDX-License-Identifier: BSD-2-Clause
"""The table of searches, whatever has been counted."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from demo import load
from demo.load import Tally

LONG = "a-pool-with-the-longest-name-that-kubernetes-permits-it-to-have-0"


@pytest.mark.parametrize("name", ["syse-0", LONG])
@pytest.mark.parametrize("count", [0, 12, 10**6, 10**12])
def test_nothing_is_cut_off(name: str, count: int) -> None:
    output = io.StringIO()
    Console(file=output, width=80).print(
        load.table({name: Tally(count, count, count, count, count), "syse-1": Tally()})
    )
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.getvalue().splitlines() if "│" in line]
    columns = ["".join(parts) for parts in zip(*cells[:-1], strict=True)]
    assert columns == [name, *4 * [str(count)], "50.0" if count else "0.0", str(count)]
