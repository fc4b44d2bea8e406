# SPDX-License-Identifier: BSD-2-Clause
"""JailPool: members, each with a monitor."""

from __future__ import annotations

from crds import condition
from crds.condition import Condition
from crds.kinds import shared, tenancy, virtualmachine
from crds.kinds.host import HOST
from crds.kinds.network import ADDRESSES, NETWORK, prefix
from crds.kinds.runtime import RUNTIMES
from crds.resource import Column, Resource, condition_column
from crds.schema import (
    LABEL,
    LABEL_LENGTH,
    distinct,
    immutable,
    items,
    keyed,
    moment,
    number,
    record,
    rule,
    rule_at_birth,
    share,
    text,
    word,
)

_HOUR = 3600
_NAME_LENGTH = 52
"""A member's name is the pool's with a hyphen and a number, and a host name has at most 63 characters."""

_RESERVED = rule(
    "!(self.name in ['IMAGE', 'DATA', 'MEMBER_ADDRESS', 'REDIS_SOCKET'])",
    "the provider sets IMAGE, DATA, MEMBER_ADDRESS and REDIS_SOCKET itself; choose another name",
)

_PLACE = (
    "$(IMAGE)/ at its beginning stands for the member's image, spec.image, which each machine gets a copy of. Another "
    "path is on the member's host; with provider bhyve it is in the virtual machine, where a golden image may have it."
)
_IN_IMAGE = (
    rule(
        "!self.startsWith('$(') || self.startsWith('$(IMAGE)/')",
        "only $(IMAGE)/ is replaced here; expected $(IMAGE)/ and a path in spec.image, or an absolute path",
    ),
    rule(
        "!self.startsWith('$(') || !self.matches('/[.][.](/|$)')",
        "the path leads out of the image with a segment ..; expected a plain path",
    ),
)

_SOURCE = (
    r"^(https?://(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z_]([0-9A-Za-z_.-]*[0-9A-Za-z_])?)(:[1-9][0-9]{0,4})?"
    r"(/[A-Za-z0-9._~!&'()*+,=:@%-]*)*|unix:(/[^/\x00-\x1f\x7f$]+)+)$"
)
"""The form; the operator checks the rest when it configures members."""

_MEMBER = record(
    "One member.",
    {
        **tenancy.OWNER,
        "name": text("The pool's name, a hyphen and the ordinal.", longest=LABEL_LENGTH),
        "ordinal": number("The number of the member, from 0.", most=shared.MEMBERS_LIMIT),
        "host": text("Its host; empty for the operator's machine.", longest=LABEL_LENGTH, shortest=0),
        "address": text("The address of its monitor.", longest=253, shortest=0),
        "ready": word("Whether it runs and serves its bundle.", "True", "False", "Unknown"),
        "reason": text("The reason, in a word for programs.", longest=64, shortest=0),
        "message": text("The reason and the remedy, in a sentence for people.", longest=1024, shortest=0),
        "image": text("The image of its installation.", longest=253, shortest=0),
        "configuration": text("Hash of the configuration of its installation.", longest=64, shortest=0),
        "certificateEnds": moment("When its monitor's certificate expires; it is provisioned again four weeks before."),
        "bundle": text("The bundle in force: digits of its release and of its facts.", longest=64, shortest=0),
        "release": text("The release in force.", longest=LABEL_LENGTH, shortest=0),
        "sessions": number("The number of its sessions."),
        "drainingSince": moment("When it stopped accepting sessions, because it will be removed."),
        "progress": record(
            "The progress of the playbook that works on it.",
            {
                "play": text("Name of the playbook.", longest=512, shortest=0),
                "task": text("The present step.", longest=512, shortest=0),
                "done": number("The number of finished steps."),
                "total": number("The number of all steps; 0 when unknown."),
            },
        ),
    },
    required=("name",),
    rules=(tenancy.STAYS,),
)

_SPEC = record(
    "The desired state of the pool.",
    {
        "allowedNamespaces": tenancy.ALLOWED_NAMESPACES,
        "allowedModes": distinct(
            "The modes in which pipelines run here. audit, and a Policy in mode Audit or Warn, allow what they record; "
            "baseline enforces nothing, and a Benchmark needs it.",
            word("A mode.", *shared.MODES),
            most=len(shared.MODES),
            default=["shai", "dynamic", "dynamic-lazy"],
        ),
        "allowedSources": distinct(
            "What the members' monitors may fetch facts from, and the stores of pipelines in mode baseline, beside the "
            "members' own: https://HOST[:PORT][/PATH], http://HOST[:PORT][/PATH] or unix:/PATH. A path that ends in a "
            "slash allows what is beneath it, another one only itself, and none all paths. A name that resolves to the "
            "machine itself or its link is not followed: list the address, or localhost.",
            text("A source.", longest=1024, pattern=_SOURCE),
            most=64,
        ),
        "replicas": number("The desired number of members.", most=shared.MEMBERS_LIMIT, default=1),
        "provider": word(
            "Where members are installed. local: on the operator's machine. linux: on the listed hosts, by SSH. bhyve: "
            "in jails of virtual machines on the listed FreeBSD hosts. Immutable.",
            "local",
            "linux",
            "bhyve",
            rules=(
                immutable(
                    "members cannot move between providers; make another pool and change spec.pool of the pipelines"
                ),
            ),
        ),
        "hosts": keyed(
            "The machines for members; providers linux and bhyve only.",
            HOST,
            by="name",
            most=virtualmachine.HOSTS_LIMIT,
        ),
        "jails": virtualmachine.jails(),
        "requires": virtualmachine.requires(),
        "virtualMachine": virtualmachine.SPEC,
        "maxMembers": number(
            "The maximum number of members on the operator's machine; provider local only.",
            least=1,
            most=shared.MEMBERS_LIMIT,
            default=8,
        ),
        "directory": text(
            "The directory of the members, as an absolute path. Immutable.",
            longest=255,
            pattern=shared.HOST_PATH,
            default="/var/lib/shai",
            rules=(
                rule("!self.matches('(^|/)[.]{1,2}(/|$)')", "the path has a segment . or ..; expected a plain path"),
                immutable("members would lose their data; make another pool"),
            ),
        ),
        "image": text(
            "The programs of the members: a directory in the operator's --images with bin/shai, runtime/libshai.so "
            "and whatever tasks need. Members are replaced one after the other when it changes.",
            longest=253,
            pattern=LABEL.replace("-a-z0-9", "-a-z0-9._"),
            default="default",
        ),
        "data": record(
            "The initial content of a new member's data directory; left out: it is empty.",
            {
                "source": text(
                    f"A directory. {_PLACE}",
                    longest=shared.PATH_LENGTH,
                    pattern=r"^(/|\$\()[^\x00-\x1f\x7f]*$",
                    rules=_IN_IMAGE,
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
                    "None: there is none; pipelines in mode baseline may name a listed one. Managed: a private Redis "
                    "beside each monitor, as $(REDIS_SOCKET).",
                    "None",
                    "Managed",
                    default="None",
                ),
                "seed": text(
                    f"A file of commands, in Redis' protocol or one a line, that fills a new store. {_PLACE}",
                    longest=shared.PATH_LENGTH,
                    pattern=r"^(/|\$\()[^\x00-\x1f\x7f]*$",
                    rules=_IN_IMAGE,
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
        "runtimes": RUNTIMES,
        "network": NETWORK,
        "update": record(
            "How members are updated when the pool changes.",
            {
                "maxUnavailable": share(
                    "How many members may be unavailable at once; a percentage is rounded down, to at least one.",
                    most=shared.MEMBERS_LIMIT,
                    default=1,
                )
            },
            default={},
        ),
        "scaleIn": record(
            "How members are removed when there are too many.",
            {
                "policy": word(
                    "Which are removed first. HighestOrdinal: the newest. UnreadyFirst: those that are not ready, then "
                    "the newest.",
                    "HighestOrdinal",
                    "UnreadyFirst",
                    default="HighestOrdinal",
                ),
                "drainSeconds": number(
                    "How long a member waits for the end of its sessions before it is stopped, in seconds.",
                    most=_HOUR,
                    default=30,
                ),
            },
            default={},
        ),
        "healing": record(
            "When a member is repaired, by provisioning it again.",
            {
                "failureThreshold": number("After how many consecutive failed checks.", least=1, most=100, default=3),
                "periodSeconds": number(
                    "How often each member is checked, in seconds.", least=1, most=_HOUR, default=10
                ),
            },
            default={},
        ),
    },
    required=("provider",),
    rules=(
        rule(
            "self.provider == 'local' || (has(self.hosts) && size(self.hosts) > 0)",
            "hosts is missing; providers linux and bhyve need at least one",
        ),
        rule(
            "self.provider != 'local' || !has(self.hosts) || size(self.hosts) == 0",
            "hosts is given, but provider local has none; remove it or choose provider linux or bhyve",
        ),
        rule(
            f"!isCIDR({ADDRESSES}) || {prefix(ADDRESSES)} < 24 || self.replicas <= "
            f"[254, 126, 62, 30, 14, 6, 2, 0, 0][{prefix(ADDRESSES)} - 24]",
            "the range has too few addresses; lower replicas, or make another pool with a larger range",
        ),
        *virtualmachine.RULES,
    ),
)

JAIL_POOL = Resource(
    kind="JailPool",
    plural="jailpools",
    short="jailp",
    namespaced=False,
    longest_name=_NAME_LENGTH,
    about="A pool of members. Each has its own monitor, and all of a namespace run the same pipelines.",
    spec=_SPEC,
    status={
        "runtimes": items(
            "The runtimes that all members have.",
            text("Name of a runtime.", longest=LABEL_LENGTH),
            most=16,
        ),
        "replicas": number("The number of members."),
        "readyReplicas": number("The number of members whose monitors answer and serve their bundle."),
        "availableReplicas": number("The number of members that serve sessions."),
        "updatedReplicas": number("The number of members with the desired configuration and release."),
        "selector": text("Selects the members, for the scale subresource.", longest=512, shortest=0),
        "members": keyed("The members, by ordinal.", _MEMBER, by="name", most=shared.MEMBERS_LIMIT),
        **tenancy.STATUS,
        **virtualmachine.STATUS,
    },
    conditions={
        "Ready": Condition(
            "Whether there are as many members as wanted, all are as spec says, and all serve the releases that they "
            "are to have.",
            true=("AllReady",),
            false=(
                "Updating",
                "Unreachable",
                "MonitorNotReady",
                "BundlePending",
                "BundleRefused",
                "Starting",
                "TaskFailed",
                "AnalysisFailed",
                "Draining",
                "Replacing",
                "NamespaceWithdrawn",
            ),
            others=("Provisioned",),
        ),
        "Progressing": Condition(
            "Whether provisioning, an update or a rollout is in progress.",
            true=("Provisioning", "Draining", "Updating", "Progressing", "Replacing"),
            false=("Complete", "ReplacementHeld", "ReplacementRolledBack", *condition.HOLDING_REASONS),
        ),
        "Provisioned": Condition(
            "Whether the members could be provisioned.",
            true=("Provisioned",),
            false=(
                "Provisioning",
                "Deleting",
                "HostUnreachable",
                "HostKeyMismatch",
                "AuthenticationFailed",
                "PlaybookFailed",
                "TooFewHosts",
                "TimedOut",
                "ImageMissing",
                "Cancelled",
                "Surveying",
                "NoVirtualization",
                "StorageFull",
                "ImageFetchFailed",
                "ChecksumMismatch",
                "ArchitectureMismatch",
                "GuestUnreachable",
                "BridgeConflict",
                "JailStuck",
                "ClockSkew",
                "EnforcementInsufficient",
                "ProviderUnknown",
            ),
        ),
    },
    columns=(
        Column("Desired", ".spec.replicas", "integer"),
        Column("Ready", ".status.readyReplicas", "integer"),
        Column("Updated", ".status.updatedReplicas", "integer"),
        Column("Available", ".status.availableReplicas", "integer"),
        Column("Provider", ".spec.provider"),
        condition_column("Reason", "Ready", "reason"),
        Column("Serves", ".status.serves", wide=True),
        Column("Image", ".spec.image", wide=True),
        Column("Hosts", ".status.placement", wide=True),
        condition_column("Message", "Ready", "message", wide=True),
    ),
    selectable=(".spec.provider",),
    rules=(
        virtualmachine.NAME_RULE,
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
