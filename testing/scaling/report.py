# SPDX-License-Identifier: BSD-2-Clause
"""Steps of the measurement, what they cost, and how this is shown."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESAMPLES = 2000


@dataclass
class Step:
    """The cost of one action of a user."""

    world: str
    step: str
    sent_seconds: float
    """The time until kubectl had sent everything."""
    done_seconds: float
    """The time until all objects had the expected status, from the same moment."""
    operator_cpu_seconds: float
    """Until it was quiet."""
    validator_cpu_seconds: float
    server_cpu_seconds: float
    """Of the API server."""
    kubectl_cpu_seconds: float
    megabytes: float
    """The most resident memory that the operator has had."""
    load: float
    """The machine's load average at the end."""
    requests: dict[str, int] = field(default_factory=dict)
    """Requests of the operator by verb and kind, without those for leases."""
    bare_seconds: float | None = None
    """The time in which kubectl creates the same objects where nobody looks at them; None: not measured."""

    @property
    def total(self) -> int:
        """The number of all requests."""
        return sum(self.requests.values())

    def written(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "total": self.total}


@dataclass(frozen=True)
class Estimate:
    """A quantile of repeated measurements, with the 95 % interval of a bootstrap."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.value:.1f} s [{self.low:.1f}, {self.high:.1f}]"


def quantile(samples: Sequence[float], share: float, seed: int = 1) -> Estimate:
    """Estimate a quantile. With few samples, a high one is the longest of them, and its interval says little."""
    # The seed makes the interval of given samples the same each time.
    chance = random.Random(seed)  # noqa: S311 - resampling, no secret
    found = sorted(_nearest(chance.choices(samples, k=len(samples)), share) for _ in range(_RESAMPLES))
    return Estimate(_nearest(samples, share), _nearest(found, 0.025), _nearest(found, 0.975))


def _nearest(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def table(steps: Sequence[Step]) -> str:
    """Return the steps as a table for people."""
    columns = ("bare s", "sent s", "done s", "operator", "validate", "server", "kubectl", "MB", "load", "requests")
    lines = [f"{'world':30}{'step':22}" + "".join(f"{column:>9}" for column in columns) + "  most of them"]
    for step in steps:
        most = sorted(step.requests.items(), key=lambda entry: -entry[1])[:4]
        cpu = (
            step.operator_cpu_seconds,
            step.validator_cpu_seconds,
            step.server_cpu_seconds,
            step.kubectl_cpu_seconds,
        )
        bare = "" if step.bare_seconds is None else f"{step.bare_seconds:.1f}"
        lines.append(
            f"{step.world:30}{step.step:22}{bare:>9}{step.sent_seconds:9.1f}{step.done_seconds:9.1f}"
            + "".join(f"{seconds:9.1f}" for seconds in cpu)
            + f"{step.megabytes:9.0f}{step.load:9.1f}{step.total:9d}  "
            + ", ".join(f"{count} {key}" for key, count in most)
        )
    return "\n".join(lines)
