# SPDX-License-Identifier: BSD-2-Clause
"""Policy and its revisions."""

from __future__ import annotations

from crds import condition
from crds.condition import Condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import LABEL, LABEL_LENGTH, immutable, items, name, number, record, rule, rule_at_birth, text, word

TEXT_LENGTH = 65536
HISTORY_LIMIT = 100
_MODES = ("Audit", "Warn", "Enforce")

_BYTES = rule(
    f"size(bytes(self)) <= {TEXT_LENGTH}",
    f"the text is too large; at most {TEXT_LENGTH} bytes are allowed",
)


def _revision(about: str) -> dict[str, object]:
    return text(about, longest=LABEL_LENGTH, pattern=LABEL)


POLICY = Resource(
    kind="Policy",
    plural="policies",
    short="shpol",
    about="A policy: who may read data, who may change it, and how data derived from it is relaxed. Conduits and tasks "
    "refer to it by name. A changed policy is rolled out over the members of a pool and rolled back if it causes harm.",
    spec=record(
        "The desired state of the policy.",
        {
            "text": text(
                "One policy of the policy language, at most 65,536 bytes. It is declared under this object's name, "
                "with an underscore for each hyphen. It may include other Policies of this namespace.",
                longest=TEXT_LENGTH,
                rules=(_BYTES,),
            ),
            "mode": word(
                "What happens to accesses that this policy alone forbids. Audit: recorded and allowed. Warn: the same, "
                "with warning events. Enforce: denied.",
                *_MODES,
                default="Enforce",
            ),
            "rollout": record(
                "How changes of this policy are rolled out, if not as the pipeline says.",
                {"steps": shared.steps("Steps that replace those of the pipeline, in ascending order.")},
            ),
            "revisionHistoryLimit": number(
                "The number of old PolicyRevisions to keep besides those in use.", most=HISTORY_LIMIT, default=10
            ),
        },
        required=("text",),
    ),
    status={
        "parameters": items(
            "The parameters that references to this policy give values for, in order.",
            text("Name of a parameter.", longest=LABEL_LENGTH + 1),
            most=16,
        ),
        "composed": record(
            "Of a policy that includes others of its namespace: its content with their clauses in place.",
            {
                "generation": number("The generation of this object of which it is."),
                "hash": shared.sha256("SHA-256 of mode and text, as the PolicyRevision has it."),
            },
            required=("generation", "hash"),
        ),
        "stableRevision": _revision("The PolicyRevision in force on members that take part in no rollout."),
        "candidateRevision": _revision("The PolicyRevision that is being rolled out."),
        "rejectedRevision": _revision("The PolicyRevision that was rolled back; another change of spec replaces it."),
        "latestRevision": number("The number of the newest PolicyRevision."),
    },
    conditions={
        "Accepted": condition.validity("Whether the text is valid, and all that it includes.", "IncludeMissing"),
        "Ready": Condition(
            "Whether the text of this generation is in force, and no member has another one.",
            true=("Stable", "Unused"),
            false=("RevisionBlocked",),
            others=("Accepted", "RolledOut"),
        ),
        "RolledOut": condition.rolled_out("The state of its rollout."),
    },
    columns=(
        Column("Mode", ".spec.mode"),
        condition_column("Ready", "Ready"),
        condition_column("Reason", "Ready", "reason"),
        Column("Revision", ".status.latestRevision", "integer"),
        Column("Stable", ".status.stableRevision", wide=True),
        Column("Candidate", ".status.candidateRevision", wide=True),
        Column("Rejected", ".status.rejectedRevision", wide=True),
        condition_column("Message", "Ready", "message", wide=True),
    ),
    selectable=(".spec.mode",),
)

POLICY_REVISION = Resource(
    kind="PolicyRevision",
    plural="policyrevisions",
    short="shrev",
    about="One content of a Policy, kept so that a rollout can roll back to it. Created and deleted by the operator.",
    spec=record(
        "The content. Immutable.",
        {
            "policy": name("The Policy that had this content."),
            "revision": number("The number of the content, from 1.", least=1),
            "hash": shared.sha256("SHA-256 of mode and text, in lower-case hexadecimal."),
            "text": text("The policy's text, at most 65,536 bytes.", longest=TEXT_LENGTH, rules=(_BYTES,)),
            "mode": word("The policy's mode: Audit, Warn or Enforce.", *_MODES),
        },
        required=("policy", "revision", "hash", "text", "mode"),
        rules=(immutable("a revision is what the policy once was; change the Policy instead"),),
    ),
    status=None,
    rules=(
        rule_at_birth(
            "self.metadata.name.endsWith('-' + self.spec.hash.substring(0, 32))",
            "metadata.name must end with a hyphen and the first 32 digits of spec.hash",
        ),
    ),
    columns=(
        Column("Policy", ".spec.policy"),
        Column("Revision", ".spec.revision", "integer"),
        Column("Mode", ".spec.mode"),
        Column("Hash", ".spec.hash", wide=True),
    ),
    selectable=(".spec.policy",),
)
