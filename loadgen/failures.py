# SPDX-License-Identifier: BSD-2-Clause
"""What may go wrong on a user's machine: reported in a line, without a trace of calls."""

from __future__ import annotations

from loadgen.dataset import DatasetError
from loadgen.enforcement import EnforcementError
from loadgen.manifests import ManifestError
from loadgen.measurement import MeasurementError
from loadgen.member import MemberError
from loadgen.monitor import MonitorError
from loadgen.orders import DriverError
from loadgen.plan import PlanError
from loadgen.population import PopulationError
from loadgen.processes import ProcessGoneError
from loadgen.protocol import ProtocolError
from loadgen.stores import StoreError
from loadgen.supervisor import ProcessFailedError
from loadgen.workspace import WorkspaceError

FAILURES = (
    DatasetError,
    DriverError,
    EnforcementError,
    ManifestError,
    MeasurementError,
    MemberError,
    MonitorError,
    OSError,
    PlanError,
    PopulationError,
    ProcessFailedError,
    ProcessGoneError,
    ProtocolError,
    StoreError,
    WorkspaceError,
)
