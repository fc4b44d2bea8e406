# SPDX-License-Identifier: BSD-2-Clause
"""JailPool: members, each with a monitor, and their hosts."""

from __future__ import annotations

from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import (
    LABEL,
    LABEL_LENGTH,
    distinct,
    immutable,
    items,
    keyed,
    moment,
    name,
    number,
    record,
    rule,
    rule_at_birth,
    share,
    text,
    word,
)

_HOSTS = 64
_MEMBERS_ON_HOST = 64
_HOUR = 3600
_NAME_LENGTH = 52
"""A member's name is the pool's with a hyphen and a number, and a host name has at most 63 characters."""

_RANGE = "self.network.addresses"
_PREFIX = f"(cidr({_RANGE}).prefixLength() - (cidr({_RANGE}).ip().family() == 6 ? 96 : 0))"
"""The prefix in the sense of IPv4. The first and the last address of a range are not used."""

_RESERVED = rule(
    "!(self.name in ['IMAGE', 'DATA', 'MEMBER_ADDRESS', 'REDIS_SOCKET'])",
    "the provider sets IMAGE, DATA, MEMBER_ADDRESS and REDIS_SOCKET itself; choose another name",
)
_MAXIMUM = number("How many members it takes.", least=1, most=_MEMBERS_ON_HOST, default=8)

_HOST = record(
    "A machine that members are put on, reached by SSH.",
    {
        "name": name("By which status and events call it; unique in the pool."),
        "address": text(
            "Host name or address that SSH connects to.",
            longest=253,
            pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$",
        ),
        "port": number("Port of its SSH server.", least=1, most=65535, default=22),
        "user": text(
            "User that logs in; root, or one who may use sudo without a password.",
            longest=32,
            pattern=r"^[a-z_][a-z0-9_-]*$",
            default="root",
        ),
        "privateKeySecret": record(
            "The Secret with the private key. The operator needs leave to read it: see the operations guide.",
            {
                "namespace": name("Its namespace."),
                "name": text("Its name.", longest=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"),
                "key": text("The key within it.", longest=253, pattern=r"^[-._a-zA-Z0-9]+$", default="ssh-privatekey"),
            },
            required=("namespace", "name"),
        ),
        "hostKey": text(
            "The host's public key, as in known_hosts without the host: algorithm and base64. Another key is refused.",
            longest=2048,
            rules=(
                rule(
                    "self.matches('^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+={0,2}$')",
                    "not a host key; expected a form such as ssh-ed25519 AAAA…, which ssh-keyscan prints after the "
                    "host",
                ),
            ),
        ),
        "maxMembers": _MAXIMUM,
    },
    required=("name", "address", "privateKeySecret", "hostKey"),
)

_MEMBER = record(
    "One member.",
    {
        "name": text("The pool's name, a hyphen and the ordinal.", longest=LABEL_LENGTH),
        "ordinal": number("Counts members, from 0.", most=shared.MEMBERS_LIMIT),
        "host": text("The host that it is on; empty for this machine.", longest=LABEL_LENGTH, shortest=0),
        "address": text("Where its monitor is reached.", longest=253, shortest=0),
        "ready": word("Whether it is up and serves what it should.", "True", "False", "Unknown"),
        "reason": text("Why, in a word for programs.", longest=64, shortest=0),
        "message": text("Why, and what to do, in a sentence for people.", longest=1024, shortest=0),
        "image": text("The image that it was made from.", longest=253, shortest=0),
        "configuration": text("Hash of the configuration that it was provisioned with.", longest=64, shortest=0),
        "certificateEnds": moment("When its monitor's certificate expires; it is provisioned anew four weeks before."),
        "bundle": text(
            "The bundle that it has in force: digits of its release and of its facts.", longest=64, shortest=0
        ),
        "release": text("The release that it has in force.", longest=LABEL_LENGTH, shortest=0),
        "sessions": number("How many sessions it serves."),
        "drainingSince": moment("Since when it is being removed, and takes no new sessions."),
        "progress": record(
            "How far a playbook is that works on it.",
            {
                "play": text("Name of the playbook.", longest=512, shortest=0),
                "task": text("What it is doing.", longest=512, shortest=0),
                "done": number("Steps that are done."),
                "total": number("Steps there are; 0 when unknown."),
            },
        ),
    },
    required=("name",),
)


def _release(about: str) -> dict[str, object]:
    return text(about, longest=LABEL_LENGTH, shortest=0)


_ALLOWED_NAMESPACES = record(
    "Whose pipelines may use the pool. Left out: those of the namespace that it serves already, and nobody's when it "
    "serves none yet. Members keep their data when this changes: to hand an empty pool on, scale it to 0 in between.",
    {
        "names": distinct(
            "The namespaces, by name.",
            name("Name of a namespace."),
            most=16,
            rules=(
                rule(
                    "size(self) <= 1",
                    "a pool serves one namespace; name one, and make a pool for each of the others",
                ),
            ),
        )
    },
)

_SPEC = record(
    "The pool as it should be.",
    {
        "allowedNamespaces": _ALLOWED_NAMESPACES,
        "allowedModes": distinct(
            "The modes in which pipelines run here. audit, and a Policy in mode Audit or Warn, allow what they record; "
            "baseline enforces nothing, and a Benchmark needs it.",
            word("A mode.", *shared.MODES),
            most=len(shared.MODES),
            default=["shai", "dynamic"],
        ),
        "replicas": number("How many members there are.", most=shared.MEMBERS_LIMIT, default=1),
        "provider": word(
            "Where members live. local: on the machine that the operator runs on. linux: on the hosts listed, by SSH. "
            "Cannot change.",
            "local",
            "linux",
            rules=(
                immutable(
                    "members cannot move between providers; make another pool and change spec.pool of the pipelines"
                ),
            ),
        ),
        "hosts": keyed("The machines that members are put on; provider linux only.", _HOST, by="name", most=_HOSTS),
        "maxMembers": number(
            "How many members this machine takes; provider local only.",
            least=1,
            most=shared.MEMBERS_LIMIT,
            default=8,
        ),
        "directory": text(
            "Where members are kept, as an absolute path. Cannot change.",
            longest=255,
            pattern=shared.ABSOLUTE_PATH,
            default="/var/lib/shai",
            rules=(
                rule("!self.matches('(^|/)[.]{1,2}(/|$)')", "the path has a segment . or ..; expected a plain path"),
                immutable("members would lose their data; make another pool"),
            ),
        ),
        "image": text(
            "What members are made from: a directory beneath the operator's --images with bin/shai, runtime/libshai.so "
            "and whatever tasks need. Members are replaced one after the other when it changes.",
            longest=253,
            pattern=LABEL.replace("-a-z0-9", "-a-z0-9._"),
            default="default",
        ),
        "data": record(
            "What a new member's data directory starts with; empty when left out.",
            {
                "source": text(
                    "A directory on the member's host. $(NAME) is replaced.",
                    longest=shared.PATH_LENGTH,
                    pattern=r"^(/|\$\()",
                ),
                "mode": word(
                    "Copy: every member has its own. Link: files are hard links, which no task may change.",
                    "Copy",
                    "Link",
                    default="Copy",
                ),
            },
            required=("source",),
        ),
        "keyValue": record(
            "The key-value store of each member.",
            {
                "mode": word(
                    "None: there is none, or the pipelines name one themselves. Managed: a private Redis beside each "
                    "monitor, as $(REDIS_SOCKET).",
                    "None",
                    "Managed",
                    default="None",
                ),
                "seed": text(
                    "A file of commands, in Redis' protocol or one a line, that fills a new store. $(NAME) is "
                    "replaced.",
                    longest=shared.PATH_LENGTH,
                    pattern=r"^(/|\$\()",
                ),
            },
            default={},
            rules=(
                rule("!has(self.seed) || self.mode == 'Managed'", "seed fills a managed store; set mode to Managed"),
            ),
        ),
        "variables": shared.variables(
            "Values for $(NAME) on all members. The provider adds IMAGE, DATA, MEMBER_ADDRESS and REDIS_SOCKET.",
            rules=(_RESERVED,),
        ),
        "network": record(
            "Addresses of the members.",
            {
                "addresses": text(
                    "The range, as a CIDR; the member with ordinal i has the (i+1)th address that a machine can have. "
                    "Cannot change.",
                    longest=64,
                    default="127.0.10.0/24",
                    rules=(
                        rule("isCIDR(self)", "not a range of addresses; expected a form such as 127.0.10.0/24"),
                        rule(
                            "!isCIDR(self) || cidr(self) == cidr(self).masked()",
                            "the range does not begin at this address; set the bits after the prefix to zero",
                        ),
                        immutable("members are known by their addresses; make another pool"),
                    ),
                ),
                "monitorPort": number("Port of the members' monitors.", least=1, most=65535, default=8443),
            },
            default={},
        ),
        "update": record(
            "How members are replaced when the pool changes.",
            {
                "maxUnavailable": share(
                    "How many members may be away at once; a percentage is rounded down, to at least one.",
                    most=shared.MEMBERS_LIMIT,
                    default=1,
                )
            },
            default={},
        ),
        "scaleIn": record(
            "How members go when there are too many.",
            {
                "policy": word(
                    "Which go first. HighestOrdinal: the newest. UnreadyFirst: those that are not ready, then the "
                    "newest.",
                    "HighestOrdinal",
                    "UnreadyFirst",
                    default="HighestOrdinal",
                ),
                "drainSeconds": number(
                    "How long a member's sessions may go on before it is stopped, in seconds.", most=_HOUR, default=30
                ),
            },
            default={},
        ),
        "healing": record(
            "When a member is provisioned anew by itself.",
            {
                "failureThreshold": number("After how many failed looks in a row.", least=1, most=100, default=3),
                "periodSeconds": number(
                    "How often each member is looked at, in seconds.", least=1, most=_HOUR, default=10
                ),
            },
            default={},
        ),
    },
    required=("provider",),
    rules=(
        rule(
            "self.provider != 'linux' || (has(self.hosts) && size(self.hosts) > 0)",
            "hosts is missing; provider linux needs at least one",
        ),
        rule(
            "self.provider == 'linux' || !has(self.hosts) || size(self.hosts) == 0",
            "hosts is given, but provider local has none; remove it or choose provider linux",
        ),
        rule(
            f"!isCIDR({_RANGE}) || {_PREFIX} < 24 || self.replicas <= [254, 126, 62, 30, 14, 6, 2, 0, 0][{_PREFIX} - "
            f"24]",
            "the range has too few addresses; lower replicas, or make another pool with a larger range",
        ),
    ),
)

JAIL_POOL = Resource(
    kind="JailPool",
    plural="jailpools",
    short="jailp",
    namespaced=False,
    longest_name=_NAME_LENGTH,
    about="A pool of members that all run the same pipelines, each under a monitor of its own.",
    spec=_SPEC,
    status={
        "namespace": text(
            "The namespace whose pipelines the pool runs; empty when it serves nobody.",
            longest=LABEL_LENGTH,
            shortest=0,
        ),
        "replicas": number("How many members there are."),
        "readyReplicas": number("How many are up and answer."),
        "availableReplicas": number("How many serve sessions."),
        "updatedReplicas": number("How many are as spec says."),
        "selector": text("Selects the members, for the scale subresource.", longest=512, shortest=0),
        "members": keyed("The members, by ordinal.", _MEMBER, by="name", most=shared.MEMBERS_LIMIT),
        "stableRelease": _release("The release on members that take part in no rollout."),
        "candidateRelease": _release("The release that is being rolled out."),
        "rejectedRelease": _release("The release that was rolled back."),
        "rollout": shared.rollout_status(
            "Where the rollout stands; an operator that starts again goes on from here.",
            {
                "superseded": _release("An earlier candidate that the canaries have while this one is compared."),
                "canaries": items(
                    "The members that have the candidate, in the order in which they were chosen.",
                    text("Name of a member.", longest=LABEL_LENGTH),
                    most=shared.MEMBERS_LIMIT,
                ),
                "watchedSince": moment("From when on all members of this step have been ready."),
                "interruptions": number("How often they have stopped being ready since the step began."),
                "before": record(
                    "What members without the change did before the last step.",
                    {
                        "sessions": number("Sessions that ended."),
                        "decisions": number("Decisions of their monitors."),
                        "refusals": number("Decisions that were denials."),
                        "microseconds": number("Time that the monitors took for decisions, in microseconds."),
                    },
                ),
            },
        ),
    },
    conditions={
        "Ready": "Whether all members are up and serve what they should.",
        "Progressing": "Whether something is under way: provisioning, an update, a rollout.",
        "Provisioned": "Whether members could be made. Reasons: Provisioned, Provisioning, HostUnreachable, "
        "HostKeyMismatch, AuthenticationFailed, PlaybookFailed, TooFewHosts, TimedOut, ImageMissing.",
    },
    columns=(
        Column("Desired", ".spec.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Updated", ".status.updatedReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Provider", ".spec.provider"),
        condition_column("Reason", "Ready", "reason"),
        Column("Serves", ".status.namespace", wide=True),
        Column("Image", ".spec.image", wide=True),
        Column("Release", ".status.stableRelease", wide=True),
        Column("Candidate", ".status.candidateRelease", wide=True),
        condition_column("Message", "Ready", "message", wide=True),
    ),
    selectable=(".spec.provider",),
    rules=(
        rule_at_birth(
            "size(self.spec.directory) + size(self.metadata.name) <= 55",
            "spec.directory is too long for sockets beneath it; with the pool's name it may have 55 characters",
        ),
    ),
    scale={
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
)
