# SPDX-License-Identifier: BSD-2-Clause
"""The panels that show nothing, or nothing but zero, in the demo, each with the reason."""

from __future__ import annotations

_NO_TRIAL = "The demo puts no policy in mode Audit or Warn, and no pipeline in mode audit."
_NO_CANARY = "The demo's pool has one member, so that no canary is compared with others; docs/rollout.md has three."
_NO_CHANGE = "The demo changes no facts while sessions run."
_NO_DOCUMENT = "No document comes, changes or goes while the demo runs."
_NO_SOURCE = "The demo's facts are in files and come from no FactSource."
_NO_HOST = "The demo's pool is of provider local; only pools of provider bhyve have hosts of virtual machines."
_NO_INTERVAL = "Size smoke measures one round, so that there are no intervals."
_SOUND = "All is well in the demo: this counts what goes wrong."
_QUICK = "The operator keeps up with the demo: few scrapes see an object that waits, and none a watch that is behind."

REASONS: dict[tuple[str, str], str] = {
    ("shai-overhead", "would-refuse"): _NO_TRIAL,
    ("shai-overhead", "added"): _NO_INTERVAL,
    ("shai-pipeline", "restarts"): _SOUND,
    ("shai-pipeline", "discarded"): _SOUND,
    ("shai-policies", "would-refuse"): _NO_TRIAL,
    ("shai-policies", "would-by-policy"): _NO_TRIAL,
    ("shai-policies", "omitted"): "No task of the demo is refused so often that the audit log begins to summarise.",
    ("shai-analysis", "stale"): _NO_CHANGE,
    ("shai-analysis", "stale-time"): _NO_CHANGE,
    ("shai-analysis", "facts"): "The demo changes no facts while sessions run; the scenario unfriending does.",
    ("shai-analysis", "revocation"): "The demo's pipeline has revocation: lazy, so that no change ends a session.",
    ("shai-analysis", "documents"): _NO_DOCUMENT,
    ("shai-analysis", "ingest"): _NO_DOCUMENT,
    ("shai-analysis", "mispredicted"): "The demo's users come from the regions that its facts say; the scenario "
    "mispredicted has others.",
    ("shai-analysis", "learned"): "The analysis foresees all that the demo's users read.",
    ("shai-analysis", "blocked"): _SOUND,
    ("shai-rollout", "denials"): _NO_CANARY,
    ("shai-rollout", "decision-time"): _NO_CANARY,
    ("shai-rollout", "sessions"): _NO_CANARY,
    ("shai-rollout", "rolled-back"): _NO_CANARY,
    ("shai-pool", "unrecorded"): _SOUND,
    ("shai-pool", "rejected"): _SOUND,
    ("shai-pool", "hosts"): _NO_HOST,
    ("shai-pool", "machines"): _NO_HOST,
    ("shai-pool", "free"): _NO_HOST,
    ("shai-pool", "jails"): _NO_HOST,
    ("shai-pool", "sources"): _NO_SOURCE,
    ("shai-pool", "source-age"): _NO_SOURCE,
    ("shai-benchmark", "exceeded"): "The demo's Benchmark has no thresholds.",
    ("shai-benchmark", "failed"): _SOUND,
    ("shai-benchmark", "violations"): _SOUND,
    ("shai-benchmark", "accesses"): "The demo's support is refused nothing while it is measured.",
    ("shai-benchmark", "overheads"): _NO_INTERVAL,
    ("shai-operator", "errors"): _SOUND,
    ("shai-operator", "failures"): _SOUND,
    ("shai-operator", "left-out"): _SOUND,
    ("shai-operator", "queue"): _QUICK,
    ("shai-operator", "lag"): _QUICK,
    ("shai-operator", "waiting"): _QUICK,
}
"""By board and panel."""
