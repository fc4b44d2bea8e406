# SPDX-License-Identifier: BSD-2-Clause
"""The kinds, in the order of the reference page."""

from __future__ import annotations

from crds.kinds.analysis import ANALYSIS_RUN, OFFLINE_ANALYSIS
from crds.kinds.benchmark import BENCHMARK
from crds.kinds.factsource import FACT_SOURCE, PRINCIPAL
from crds.kinds.jailpool import JAIL_POOL
from crds.kinds.memberreading import MEMBER_READING
from crds.kinds.pipeline import PIPELINE
from crds.kinds.policy import POLICY, POLICY_REVISION
from crds.kinds.task import TASK
from crds.kinds.taskrun import TASK_RUN

ALL = (
    POLICY,
    POLICY_REVISION,
    FACT_SOURCE,
    PRINCIPAL,
    TASK,
    TASK_RUN,
    PIPELINE,
    JAIL_POOL,
    OFFLINE_ANALYSIS,
    ANALYSIS_RUN,
    BENCHMARK,
    MEMBER_READING,
)
