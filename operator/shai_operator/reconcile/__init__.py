# SPDX-License-Identifier: BSD-2-Clause
"""Pure decisions: observed objects in, actions out; no I/O, no clock, no kopf.

Every function can run twice, or again after a crash in the middle, with the same result: it uses only its arguments and
remembers nothing.

The modules that decide about each kind, and write its conditions:

- Policy, PolicyRevision: `policies`; RolledOut: `rollout`, `rollout_status`
- Task, Principal: `definitions`
- FactSource: `definitions`, `sources`
- Pipeline: `definitions`, `tenancy`, `sources`; RolledOut: `rollout`, `rollout_status`; Analyzed: `runs`
- JailPool: `pools`, `pool_status`, `pool_deletion`; what each namespace has of it: `shares`, `share_reconciliation`;
  whose members are: `tenancy`, `assignment`; reasons of members: `members`
- OfflineAnalysis: `analyses`
- AnalysisRun: `runs`
- TaskRun: `task_runs`
- MemberReading: `member_readings`
- Benchmark: `benchmarks`
"""
