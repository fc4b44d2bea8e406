# SPDX-License-Identifier: BSD-2-Clause
"""The virtual machines of a JailPool with provider bhyve, in its spec and in its status."""

from __future__ import annotations

from crds.kinds import shared
from crds.kinds.network import MACHINES, prefix
from crds.schema import (
    LABEL,
    LABEL_LENGTH,
    distinct,
    immutable,
    keyed,
    name,
    number,
    record,
    rule,
    rule_at_birth,
    text,
    word,
)

JAILS = 4
"""Members in a virtual machine when spec.jails is left out."""
_JAILS_LIMIT = 16
_IMAGE_LENGTH = 253
_TEBIBYTE = 1024
HOSTS_LIMIT = 64
_ORPHANS_LIMIT = 256

_STORAGE = record(
    "Where hosts keep virtual machines and their images. Immutable.",
    {
        "dataset": text(
            "A ZFS dataset.", longest=200, pattern=r"^[A-Za-z][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)*$"
        ),
        "directory": text("A directory, as an absolute path.", longest=255, pattern=shared.HOST_PATH),
    },
    rules=(
        rule("has(self.dataset) != has(self.directory)", "expected exactly one of dataset and directory"),
        rule(
            "!has(self.directory) || !self.directory.matches('(^|/)[.]{1,2}(/|$)')",
            "the path has a segment . or ..; expected a plain path",
        ),
        immutable("virtual machines would stay behind; make another pool"),
    ),
)

SPEC = record(
    "The virtual machines that hold the members; provider bhyve only.",
    {
        "image": text(
            "What a new virtual machine boots from: the name of a description in images/.",
            longest=_IMAGE_LENGTH,
            pattern=LABEL.replace("-a-z0-9", "-a-z0-9._"),
        ),
        "checksum": text(
            "SHA-512 of the image, in lower-case hexadecimal. Left out: the one that the description records.",
            longest=128,
            pattern=r"^[0-9a-f]{128}$",
        ),
        "mirror": text(
            "The URL of a mirror to fetch the image from, in place of those of the description.",
            longest=1024,
            rules=(
                rule(
                    "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && "
                    "!self.contains('@')",
                    "not the URL of a mirror; expected a form such as https://mirror.example.org/freebsd",
                ),
            ),
        ),
        "surge": number(
            "How many virtual machines there may be beyond those for the replicas while the image changes. Their "
            "members are made first, and removed at the end.",
            least=0,
            most=16,
            default=0,
        ),
        "cpus": number("Processors of each.", least=1, most=64, default=2),
        "memoryMebibytes": number("Memory of each, in MiB.", least=512, most=_TEBIBYTE * _TEBIBYTE, default=4096),
        "diskGibibytes": number(
            "Size of the disk of each, in GiB. It can only grow.",
            least=5,
            most=16 * _TEBIBYTE,
            default=20,
            rules=(rule("self >= oldSelf", "a disk cannot shrink; make another pool"),),
        ),
        "storage": _STORAGE,
        "authorizedKeys": distinct(
            "Public keys that may log in as root, beside those of the hosts' privateKeySecret. No other key may: what "
            "else is in a virtual machine's authorized_keys is removed.",
            text(
                "A key, as in authorized_keys, without options and no certificate.",
                longest=4096,
                rules=(
                    rule(
                        "self.matches('^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]{32,}={0,2}"
                        "( [ -~]*)?$')",
                        "not a public key; expected a form such as ssh-ed25519 AAAA… alice, without options, which "
                        "ssh-keygen writes into the file that ends in .pub",
                    ),
                ),
            ),
            most=16,
        ),
        "replacement": word(
            "Whether the operator may replace a virtual machine when the image changes, or when it fails for good. Its "
            "members lose their data, and get those of data.source. Manual: it waits, and says so.",
            "Manual",
            "Automatic",
            default="Manual",
        ),
    },
    required=("image", "storage"),
)


def jails() -> dict[str, object]:
    """Describe spec.jails."""
    return number(
        f"Members in a virtual machine; {JAILS} when left out. Provider bhyve only. Immutable.",
        least=1,
        most=_JAILS_LIMIT,
    )


def requires() -> dict[str, object]:
    """Describe spec.requires."""
    return word(
        "The least enforcement of a member. One with less runs no pipeline. CapsicumModule, when left out: Capsicum "
        "and the module shai.ko. Provider bhyve only.",
        "None",
        "Capsicum",
        "CapsicumModule",
    )


_BHYVE = "self.provider == 'bhyve'"
_JAILS = f"(has(self.jails) ? self.jails : {JAILS})"
_HIGHEST_PORT = 9989
_NETWORK_FIELDS = ("machines", "subnet", "gateway", "nameservers", "uplink")

RULES = (
    rule("self.provider != 'bhyve' || has(self.virtualMachine)", "virtualMachine is missing; provider bhyve needs it"),
    rule(
        f"self.provider != 'bhyve' || has({MACHINES})",
        "network.machines is missing; provider bhyve needs a range for its virtual machines",
    ),
    rule(
        f"{_BHYVE} || !(has(self.virtualMachine) || has(self.jails) || has(self.requires)"
        + "".join(f" || has(self.network.{field})" for field in _NETWORK_FIELDS)
        + ")",
        "virtualMachine, jails, requires and network's machines, subnet, gateway, nameservers and uplink belong to "
        "provider bhyve; remove them",
    ),
    rule(
        f"{_BHYVE} || !has(self.hosts) || self.hosts.all(host, !has(host.state) || host.state == 'Active')",
        "a host's state belongs to provider bhyve; take a host that is gone off the list",
    ),
    rule(
        f"!({_BHYVE}) || !has(self.hosts) || self.hosts.all(host, host.maxMembers >= {_JAILS})",
        "a host's maxMembers is smaller than jails; a host takes whole virtual machines",
    ),
    rule(
        # ansible/roles/freebsd_guest/templates/pf.conf.j2 has the last port that can be reached.
        f"!({_BHYVE}) || self.network.monitorPort <= {_HIGHEST_PORT}",
        f"network.monitorPort is above {_HIGHEST_PORT}; choose a lower one: jails can be reached up to port 9999, and "
        "twins have the ports after it",
    ),
    rule(
        f"!has({MACHINES}) || !isCIDR({MACHINES}) || {prefix(MACHINES)} < 24 || "
        f"self.replicas <= {_JAILS} * [254, 126, 62, 30, 14, 6, 2, 0, 0][{prefix(MACHINES)} - 24]",
        "network.machines has too few addresses; lower replicas, raise jails, or make another pool with a larger range",
    ),
    rule(
        f"{_JAILS} == (has(oldSelf.jails) ? oldSelf.jails : {JAILS})",
        "jails cannot change: members cannot move between virtual machines; make another pool",
    ),
)

NAME_RULE = rule_at_birth(
    "self.spec.provider != 'bhyve' || !self.metadata.name.endsWith('-vm')",
    "metadata.name ends in -vm, and provider is bhyve; members of this pool would be called as another pool's virtual "
    "machines are",
)

STATUS = {
    "hosts": keyed(
        "The hosts, as the last survey found them; provider bhyve only.",
        record(
            "One host.",
            {
                "name": name("Its name in spec.hosts."),
                "reached": word(
                    "Whether the last survey reached it; Unknown: no survey has yet.", "True", "False", "Unknown"
                ),
                "freeMemoryMebibytes": number("Free memory, in MiB."),
                "virtualMachines": number(
                    "The number of this pool's virtual machines that are placed on it, made or not."
                ),
                "jails": number("The number of this pool's members that are placed on it, made or not."),
                "version": text("Its system and release.", longest=253, shortest=0),
                "message": text("Why it takes no virtual machines, and the remedy.", longest=1024, shortest=0),
            },
            required=("name",),
        ),
        by="name",
        most=HOSTS_LIMIT,
    ),
    "virtualMachines": keyed(
        "The virtual machines; provider bhyve only.",
        record(
            "One virtual machine.",
            {
                "name": text("The pool's name, -vm- and a number from 0.", longest=LABEL_LENGTH),
                "host": text("Its host.", longest=LABEL_LENGTH, shortest=0),
                "address": text("Its address.", longest=64, shortest=0),
                "image": text("The image that it was made from.", longest=400, shortest=0),
                "state": word(
                    "Running, Stopped, Broken: what the last survey found. Pending: it is to be made. Replacing: its "
                    "members are drained, then it is made again. Unknown: its host is not reached.",
                    "Running",
                    "Stopped",
                    "Broken",
                    "Pending",
                    "Replacing",
                    "Unknown",
                ),
                "jails": number("The number of members in it."),
                "message": text("Why it waits or has failed, and the remedy.", longest=1024, shortest=0),
            },
            required=("name",),
        ),
        by="name",
        most=shared.MEMBERS_LIMIT,
    ),
    "orphans": distinct(
        "Virtual machines and jails on the hosts that this operator has made and no pool wants, as host/machine or "
        "host/machine/jail. The annotation shai.dev/delete-orphans with such names, separated by commas, deletes them.",
        text("Host, virtual machine and jail.", longest=4 * LABEL_LENGTH),
        most=_ORPHANS_LIMIT,
    ),
    "placement": text(
        "The hosts in one line, for kubectl get: virtual machines, jails and version of each.", longest=8192, shortest=0
    ),
    "machineImage": text("The image of all virtual machines, before it changes.", longest=400, shortest=0),
    "rejectedMachineImage": text(
        "The image whose virtual machines did not become ready; it is not tried again until the spec changes.",
        longest=400,
        shortest=0,
    ),
}
