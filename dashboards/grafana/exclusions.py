# SPDX-License-Identifier: BSD-2-Clause
"""The rules of Grafana's dashboard-linter that the boards do not follow, each with the reason."""

from __future__ import annotations

EXCLUSIONS = {
    "template-job-rule": "The names of Shai's metrics say which program they are from. Names that other programs have "
    'too, such as process_cpu_seconds_total, are matched with job="shai-monitor" or job="shai-operator".',
    "target-job-rule": "As template-job-rule.",
    "template-instance-rule": "Boards choose a member by its name, which stays the same when its address changes.",
    "target-instance-rule": "As template-instance-rule.",
}
"""By name of the rule. They hold for all boards."""
