# SPDX-License-Identifier: BSD-2-Clause
"""What a measurement says of a failure to people who may not see users' data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadgen.driving.orders import Outcome
from loadgen.driving.protocol import ProtocolError
from loadgen.errors import LoadgenError, PublicError
from loadgen.measuring.measurement import MeasurementError, believe
from loadgen.measuring.status import StatusFile

if TYPE_CHECKING:
    from pathlib import Path

DIARY = "Alice's diary"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (PublicError("rounds: expected a number"), "rounds: expected a number"),
        (LoadgenError(f"searching {DIARY}", public="a search failed"), "a search failed"),
        (LoadgenError(DIARY), "failed after this step: warming up"),
        (ProtocolError(f"expected JSON, got {DIARY}"), "failed after this step: warming up"),
        (OSError(2, "No such file", DIARY), "failed after this step: warming up"),
    ],
)
def test_a_failure_tells_only_what_is_for_everybody(tmp_path: Path, error: Exception, says: str) -> None:
    status = StatusFile(tmp_path / "progress.json")
    status.tell("warming up")
    status.fail(error)
    found = json.loads((tmp_path / "progress.json").read_text())
    assert (found["state"], found["message"]) == ("Failed", says)


def test_answers_of_the_service_are_not_for_everybody() -> None:
    with pytest.raises(MeasurementError, match=DIARY) as raised:
        believe(Outcome(1.0, 1.0, errors=[f"expected JSON, got {DIARY}"]), "mode shai")
    assert raised.value.public == "mode shai: 0 of 0 requests failed"
