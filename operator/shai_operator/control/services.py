# SPDX-License-Identifier: BSD-2-Clause
"""The services that the pool controller and its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shai_operator.cluster.client import Cluster
    from shai_operator.control.authority import ClientTLS
    from shai_operator.control.executor import Executor
    from shai_operator.control.jobs import Jobs
    from shai_operator.control.kinds import Kinds
    from shai_operator.control.leases import Leases
    from shai_operator.control.loop import Loop
    from shai_operator.control.release_store import ReleaseStore
    from shai_operator.control.settings import Settings
    from shai_operator.control.task_runner import TaskRunner
    from shai_operator.control.verdicts import Verdicts
    from shai_operator.providers.interface import Provider, Surveyor


@dataclass(frozen=True)
class Services:
    """The services of the pool controller."""

    settings: Settings
    loop: Loop
    cluster: Cluster
    executor: Executor
    verdicts: Verdicts
    kinds: Kinds
    releases: ReleaseStore
    leases: Leases
    jobs: Jobs
    providers: Mapping[str, Provider]
    surveyors: Mapping[str, Surveyor]
    """Those of the providers that look at hosts before they place members."""
    tls: ClientTLS
    runner: TaskRunner
