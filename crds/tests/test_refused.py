# SPDX-License-Identifier: BSD-2-Clause
"""Invalid objects, each with the message of the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crds.tests.objects import ABSENT, BHYVE, HASH, SPECS, Change, good, try_create

if TYPE_CHECKING:
    from testing.cluster import Cluster

POLICY = {"name": "p"}
SHIFT = {"start": "2026-01-01T00:00:00Z", "every": "8h"}
FACT = {"conduit": "c", "says": "s"}
HOST = SPECS["JailPool"]["hosts"][0]
LOCAL: tuple[Change, ...] = (("provider", "local"), ("hosts", ABSENT))
REDIS: Change = ("file", ABSENT)
NO_SOURCES = (
    *("*", "facts.example.org", "ftp://a.example", "redis://127.0.0.1:6379", "HTTPS://a.example", "https://"),
    *("https://a@b.example", "https://a.example:", "https://a.example?b", "https://a.example#b", "http://a b"),
    *("https://a.example.", "https://a.example/$(B)/", "unix:", "unix:/", "unix:a.sock", "unix:/a/", "unix:@a"),
    *("unix:$(REDIS_SOCKET)", "unix:/a\nb", "http://[::1%25lo]", "http://[]", "https://例え.example"),
)


def selecting(operator: str, *values: str, key: str = "team") -> dict[str, Any]:
    """Return allowedNamespaces with one requirement."""
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"selector": {"matchExpressions": [requirement]}}


def step(members: Any, pause: int = 0) -> dict[str, Any]:
    return {"members": members, "pauseSeconds": pause}


def store(**fields: Any) -> tuple[Change, ...]:
    return REDIS, ("redis", {"socket": "/run/redis", **fields})


def http(url: str, **fields: Any) -> tuple[Change, ...]:
    return REDIS, ("http", {"url": url, **fields})


def conduit(kind: str, **fields: Any) -> Change:
    return "conduits.5", {"name": "extra", "kind": kind, **fields}


def inline(*values: Any, **fields: Any) -> tuple[Change, ...]:
    return REDIS, ("inline", [{"conduit": "a", "says": "b", "tuples": [list(values)], **fields}])


def parameter(**fields: Any) -> Change:
    return "parameters", [fields]


def ends(index: int, place: int, slots: int) -> Change:
    """Add one more pipe (2) or channel (3)."""
    return f"conduits.{place}", {**SPECS["Pipeline"]["conduits"][index], "name": f"more{place}", "slots": slots}


def runtime(*given: str, name: str = "java") -> dict[str, Any]:
    return {"name": name, "paths": list(given)}


def paths(*given: str) -> list[dict[str, Any]]:
    return [{"path": path, "policy": POLICY} for path in given]


NAME = "is not a name; expected lower-case letters, digits and inner hyphens"
ASCEND = "steps must ascend"
TWICE = "two steps have the same members"
SOURCE = "expected exactly one of inline, file, redis and http"
STORE = "expected exactly one of keys and stream"
URL = "not a URL to fetch facts from"
PLAIN = "expected a plain path"
CONTROLS = ("a\nb", "\x1b[31m", "\x7f")
SPECIAL = (*CONTROLS, 'a"b', "a'b", "a\\b", "$a", "`a`", "a b", "a ;b", "a #b", "%s", "{{ 7*7 }}", "a,b", "a:b", "é")
"""Parts of paths with a meaning in files that hosts read, in commands, or in templates."""
ADDRESS = "not an address; expected a form such as 127.0.0.1:8640"
SERVICE = "not a host and a port"
SCHEDULE = "not a schedule; expected five fields"

PUBLIC_KEY = HOST["hostKey"]
OTHERS = "belong to provider bhyve; remove them"

BHYVE_CASES: list[tuple[str, tuple[Change, ...]]] = [
    ("hosts is missing", (("hosts", ABSENT),)),
    ("virtualMachine is missing", (("virtualMachine", ABSENT),)),
    ("network.machines is missing", (("network.machines", ABSENT), ("network.gateway", ABSENT))),
    ("machines and addresses overlap", (("network.machines", "198.51.100.0/25"), ("network.gateway", ABSENT))),
    ("machines and addresses overlap", (("network.machines", "198.51.100.0/24"),)),
    ("machines and addresses overlap", (("network.machines", "198.51.100.64/26"), ("network.gateway", ABSENT))),
    ("not a range of addresses", (("network.machines", "198.51.100.128"),)),
    ("the range does not begin at this address", (("network.machines", "198.51.100.129/25"),)),
    ("network.machines has too few addresses", (("network.machines", "198.51.100.252/30"), ("replicas", 9))),
    ("network.machines has too few addresses", (("jails", 1), ("replicas", 127), ("network.addresses", "10.0.0.0/8"))),
    ("gateway is not in subnet", (("network.gateway", "198.51.100.1"),)),
    ("gateway is not in subnet", (("network.gateway", "10.0.0.1"), ("network.subnet", "198.51.100.0/24"))),
    ("network.monitorPort is above 9989", (("network.monitorPort", 9990),)),
    ("subnet does not contain addresses and machines", (("network.subnet", "198.51.100.128/25"),)),
    ("not an address; expected a form such as", (("network.gateway", "router"),)),
    ("not an address; expected a form such as", (("network.nameservers", ["ns1.example.org"]),)),
    ("nameservers: Too many: 4", (("network.nameservers", [f"198.51.100.{n}" for n in range(4)]),)),
    ("uplink in body should match", (("network.uplink", "em0;reboot"),)),
    ("uplink: Too long", (("network.uplink", "e" * 16),)),
    ("jails in body should be less than or equal to 16", (("jails", 17),)),
    ("jails in body should be greater than or equal to 1", (("jails", 0),)),
    ("a host's maxMembers is smaller than jails", (("hosts.0.maxMembers", 3),)),
    ('requires: Unsupported value: "Jail"', (("requires", "Jail"),)),
    ('state: Unsupported value: "Off"', (("hosts.0.state", "Off"),)),
    ("virtualMachine.storage: Required value", (("virtualMachine.storage", ABSENT),)),
    ("expected exactly one of dataset and directory", (("virtualMachine.storage", {}),)),
    ("expected exactly one of dataset and directory", (("virtualMachine.storage.directory", "/vms"),)),
    ("dataset in body should match", (("virtualMachine.storage", {"dataset": "/zroot"}),)),
    ("dataset in body should match", (("virtualMachine.storage", {"dataset": "zroot/../tank"}),)),
    (PLAIN, (("virtualMachine.storage", {"directory": "/vms/../etc"}),)),
    *(
        ("storage.directory in body should match", (("virtualMachine.storage", {"directory": f"/vms/{part}"}),))
        for part in SPECIAL
    ),
    ("virtualMachine.image in body should match", (("virtualMachine.image", "../secret"),)),
    ("checksum in body should match", (("virtualMachine.checksum", "xy" * 64),)),
    ("not the URL of a mirror", (("virtualMachine.mirror", "ftp://mirror.example.org"),)),
    ("not the URL of a mirror", (("virtualMachine.mirror", "https://alice:secret@mirror.example.org"),)),
    ("cpus in body should be greater than or equal to 1", (("virtualMachine.cpus", 0),)),
    ("memoryMebibytes in body should be greater than or equal to 512", (("virtualMachine.memoryMebibytes", 256),)),
    ("diskGibibytes in body should be greater than or equal to 5", (("virtualMachine.diskGibibytes", 1),)),
    ('replacement: Unsupported value: "Never"', (("virtualMachine.replacement", "Never"),)),
    *(
        ("not a public key", (("virtualMachine.authorizedKeys", [key]),))
        for key in (
            f'command="sh" {PUBLIC_KEY}',
            PUBLIC_KEY.replace("ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com"),
            f"{PUBLIC_KEY}\n{PUBLIC_KEY}",
            f"{PUBLIC_KEY} älice",
            "ssh-ed25519 AAAA",
        )
    ),
    ("authorizedKeys[1]: Duplicate value", (("virtualMachine.authorizedKeys", [PUBLIC_KEY] * 2),)),
    ("authorizedKeys: Too many: 17", (("virtualMachine.authorizedKeys", [f"{PUBLIC_KEY} {n}" for n in range(17)]),)),
    ("metadata.name ends in -vm, and provider is bhyve", (("metadata.name", "web-vm"),)),
    ("is not a name", (("metadata.name", "web.site"),)),
    ("metadata.name: Too long: may not be more than 52", (("metadata.name", "a" * 64),)),
]

CASES: dict[str, list[tuple[str, tuple[Change, ...]]]] = {
    "Policy": [
        (NAME, (("metadata.name", "a.b"),)),
        ("metadata.name: Too long", (("metadata.name", "a" * 64),)),
        ("spec.text: Required value", (("text", ABSENT),)),
        ("spec.text in body should be at least 1 chars long", (("text", ""),)),
        ("spec.text: Too long: may not be more than 65536", (("text", "a" * 65537),)),
        ("at most 65536 bytes are allowed", (("text", "é" * 40000),)),
        ("spec.text in body must be of type string", (("text", 7),)),
        ('spec.mode: Unsupported value: "Off": supported values: "Audit", "Warn", "Enforce"', (("mode", "Off"),)),
        ("spec.revisionHistoryLimit in body should be less than or equal to 100", (("revisionHistoryLimit", 101),)),
        ("spec.revisionHistoryLimit in body should be greater than or equal to 0", (("revisionHistoryLimit", -1),)),
        ("spec.revisionHistoryLimit in body must be of type integer", (("revisionHistoryLimit", 1.5),)),
        (ASCEND, (("rollout", {"steps": [step(2), step(1)]}),)),
        (ASCEND, (("rollout", {"steps": [step("50%"), step("9%")]}),)),
        (ASCEND, (("rollout", {"steps": [step("100%"), step("99%")]}),)),
        (ASCEND, (("rollout", {"steps": [step("10%"), step(3), step("5%")]}),)),
        (TWICE, (("rollout", {"steps": [step("10%"), step(3), step("10%")]}),)),
        ("steps[0].members in body should be greater than or equal to 1", (("rollout", {"steps": [step(0)]}),)),
        ("steps[0].members in body should be less than or equal to 256", (("rollout", {"steps": [step(257)]}),)),
        ("steps[0].members in body should match", (("rollout", {"steps": [step("0%")]}),)),
        ("steps[0].members in body should match", (("rollout", {"steps": [step("half")]}),)),
        ("steps[0].members: Too long", (("rollout", {"steps": [step("1000%")]}),)),
        ("steps[0].members: Required value", (("rollout", {"steps": [{"pauseSeconds": 1}]}),)),
        ("pauseSeconds in body should be less than or equal to 86400", (("rollout", {"steps": [step(1, 86401)]}),)),
        ("steps: Too many: 17", (("rollout", {"steps": [step(i) for i in range(1, 18)]}),)),
        ('unknown field "spec.modus"', (("modus", "Audit"),)),
    ],
    "PolicyRevision": [
        ("metadata.name must end with a hyphen and the first 32 digits", (("metadata.name", "p-0123456789"),)),
        ("spec.hash in body should match", (("hash", HASH.upper()),)),
        ("spec.revision in body should be greater than or equal to 1", (("revision", 0),)),
        ("spec.mode: Required value", (("mode", ABSENT),)),
    ],
    "FactSource": [
        (SOURCE, (REDIS,)),
        (SOURCE, (("inline", []),)),
        (SOURCE, (("http", {"url": "https://a.example"}),)),
        ("spec.file.path in body should match", (("file.path", "facts"),)),
        ("spec.file.path in body should match", (("file.path", "/a//b"),)),
        (PLAIN, (("file.path", "/a/../b"),)),
        (PLAIN, (("file.path", "/./b"),)),
        (STORE, store()),
        (STORE, store(keys=[])),
        (STORE, store(stream={"key": "k"}, keys=[{"pattern": "a", "conduit": "a", "says": "a"}])),
        ("spec.redis.socket in body should match", store(stream={"key": "k"}, socket="redis")),
        ("spec.redis.keys[0].says: Required value", store(keys=[{"pattern": "a", "conduit": "a"}])),
        ("intervalSeconds in body should be greater than or equal to 1", store(stream={"key": "k"}, intervalSeconds=0)),
        (URL, http("facts")),
        (URL, http("file:///etc/passwd")),
        (URL, http("https://alice:secret@facts.example")),
        ("spec.http.caFile in body should match", http("https://facts.example", caFile="ca.pem")),
        ("spec.inline[0].tuples[0]: Too many: 17", inline(*range(17))),
        ("spec.inline[0].tuples[0][0] in body must be of type", inline(1.5)),
        ("spec.inline[0].says in body should be at least 1 chars long", inline(1, says="")),
    ],
    "Principal": [
        ("not an Ed25519 public key; expected 64 hexadecimal digits", (("publicKey", "0f" * 31),)),
        ("not an Ed25519 public key; expected 64 hexadecimal digits", (("publicKey", "xy" * 32),)),
        ("spec.publicKey: Too long", (("publicKey", "0f" * 33),)),
        ("allowedNamespaces.names[0] in body should match", (("allowedNamespaces", {"names": ["*"]}),)),
        ("spec.attributes[1]: Duplicate value", (("attributes", [{"name": "a", "value": "b"}] * 2),)),
        ("spec.attributes[0].value: Required value", (("attributes", [{"name": "a"}]),)),
    ],
    "Task": [
        ("a task no longer chooses the paths of its runtime; write spec.runtimeName", (("runtime", ["/"]),)),
        ("a task no longer chooses the paths of its runtime; write spec.runtimeName", (("runtime", []),)),
        *(
            ("spec.runtimeName in body should match", (("runtimeName", given),))
            for given in ("/", "../x", "$(DATA)", "Java", "-x", "a,b", "a=b", "{{x}}", "java ")
        ),
        ("spec.runtimeName in body must be of type string", (("runtimeName", ["java"]),)),
        ("spec.command in body should have at least 1 items", (("command", []),)),
        ("spec.command[0] in body should be at least 1 chars long", (("command", [""]),)),
        ("spec.taint: Required value", (("taint", ABSENT),)),
        ("spec.taint.name in body should match", (("taint.name", "My_Policy"),)),
        ("spec.taint.arguments.a in body must be of type string", (("taint.arguments", {"a": 7}),)),
        ("arguments: Too many: 17", (("taint.arguments", {f"a{i}": "" for i in range(17)}),)),
        ('spec.run: Unsupported value: "Twice"', (("run", "Twice"),)),
        ("spec.environment[0].name in body should match", (("environment", [{"name": "A-B"}]),)),
        ("spec.environment[1]: Duplicate value", (("environment", [{"name": "A"}, {"name": "A", "value": "b"}]),)),
        ("spec.parameters[1]: Duplicate value", (("parameters", ["user", "user"]),)),
        ("spec.reads[1]: Duplicate value", (("reads", ["a", "a"]),)),
        ("memoryMegabytes in body should be greater than or equal to 16", (("resources", {"memoryMegabytes": 1}),)),
        ("openFiles in body should be greater than or equal to 256", (("resources", {"openFiles": 255}),)),
        ("processes in body should be greater than or equal to 64", (("resources", {"processes": 63}),)),
        ("cpuMillicores in body should be greater than or equal to 10", (("resources", {"cpuMillicores": 9}),)),
        ("totalMemoryMegabytes in body should be", (("resources", {"totalMemoryMegabytes": 63}),)),
    ],
    "Pipeline": [
        ("spec.tasks in body should have at least 1 items", (("tasks", []),)),
        ("spec.tasks[2]: Duplicate value", (("tasks", ["reader", "worker", "reader"]),)),
        ("a conduit's from, to or task is not one of the pipeline's tasks", (("conduits.2.to", "other"),)),
        ("a conduit's from, to or task is not one of the pipeline's tasks", (("conduits.4.task", "other"),)),
        ("expect names a task that is not one of the pipeline's", (("expect.0.task", "other"),)),
        ("parameters in body should have at least 1 items", (("expect.0.from.parameters", []),)),
        ("give either from or window", (parameter(name="a"),)),
        ("give either from or window", (parameter(**{"name": "a", "from": FACT, "window": SHIFT}),)),
        ("each session has a user and a region already", (parameter(name="user", window=SHIFT),)),
        ("each session has a user and a region already", (parameter(name="region", window=SHIFT),)),
        ("parameters[0].name in body should match", (parameter(name="a-b", window=SHIFT),)),
        ("window.start in body should match", (parameter(name="a", window={**SHIFT, "start": "today"}),)),
        ("window.every in body should match", (parameter(name="a", window={**SHIFT, "every": "1.5h"}),)),
        ("keyValue is missing; a conduit holds tuples", (("keyValue", ABSENT),)),
        ("spec.conduits[5]: Duplicate value", (conduit("file", name="files", paths=paths("/b")),)),
        ('kind: Unsupported value: "socket"', (conduit("socket"),)),
        ("a conduit of kind file needs paths", (conduit("file"),)),
        ("a conduit of kind file needs paths", (conduit("file", paths=[]),)),
        ("a conduit of kind file has no access, slots", (conduit("file", paths=paths("/b"), slots=1),)),
        ("a conduit of kind file has no access, slots", (conduit("file", paths=paths("/b"), policy=POLICY),)),
        ("a conduit of kind tuple needs paths, access", (conduit("tuple", paths=paths("b")),)),
        ("a conduit of kind tuple has no directory", (conduit("tuple", paths=paths("b"), access={}, directory=True),)),
        ('type: Unsupported value: "csv"', (conduit("file", paths=paths("/b"), type="csv"),)),
        ("a conduit of kind pipe has no ingress", (("conduits.2.type", "topics"),)),
        ("a conduit with a type has no", (conduit("file", paths=paths("/b"), type="topics", ingress=True),)),
        ("a conduit with a type has no", (conduit("file", paths=paths("/b"), type="topics", directory=True),)),
        (
            "a conduit with a type has no",
            (conduit("tuple", paths=paths("b"), type="topics", access={"write": ["SET"]}),),
        ),
        (
            "a log of type access-log is a file",
            (conduit("tuple", paths=paths("b"), type="access-log", access={"read": ["GET"]}),),
        ),
        ("a conduit of kind pipe needs from, to, policy", (conduit("pipe", to="worker", policy=POLICY),)),
        ("a conduit of kind pipe has no ingress", (("conduits.2.ingress", True),)),
        ("a conduit of kind channel has no ingress", (("conduits.3.egress", True),)),
        ("a conduit of kind connection needs listen, task", (("conduits.4.listen", ABSENT),)),
        ("a conduit of kind connection has no directory, paths", (("conduits.4.paths", paths("/b")),)),
        ("from and to are the same task", (("conduits.2.to", "reader"),)),
        (ADDRESS, (("conduits.4.listen", "8640"),)),
        (ADDRESS, (("conduits.4.listen", "localhost:8640"),)),
        (ADDRESS, (("conduits.4.listen", "127.0.0.1:65536"),)),
        (ADDRESS, (("conduits.4.listen", "127.0.0.300:80"),)),
        (ADDRESS, (("conduits.4.listen", "::1:80"),)),
        ("sessions in body should be less than or equal to 4096", (("conduits.4.sessions", 4097),)),
        ("a conduit of kind pipe has no ingress", (("conduits.2.sessions", 40),)),
        (SERVICE, (("conduits.4.service", "example.org"),)),
        (SERVICE, (("conduits.4.service", "Example.org:443"),)),
        (SERVICE, (("conduits.4.service", "example.org:65536"),)),
        (SERVICE, (("conduits.4.service", "https://example.org:443"),)),
        (SERVICE, (("conduits.4.service", "a" * 92 + ":443"),)),
        ("a conduit of kind file has no access", (("conduits.0.service", "example.org:443"),)),
        ("a path does not begin with /", (conduit("file", paths=paths("b")),)),
        ("paths[0].path in body should match", (conduit("file", paths=paths("/**/b")),)),
        ("paths[0].path in body should match", (conduit("file", paths=paths("/b*")),)),
        ("paths[0].path in body should match", (conduit("file", paths=paths("/{a-b}")),)),
        ("paths[0].path in body should match", (conduit("file", paths=paths("/{a")),)),
        ("paths[1]: Duplicate value", (conduit("file", paths=paths("/b", "/b")),)),
        ("slots in body should be less than or equal to 32", (("conduits.2.slots", 33),)),
        ("too many pipes; at most 64", (ends(2, 5, 32), ends(2, 6, 32))),
        ("too many channels; at most 32", (("conduits.3.slots", 32), ends(3, 5, 1))),
        ("spec.pool in body should match", (("pool", "A"),)),
        (ASCEND, (("rollout", {"steps": [step("100%"), step("1%")]}),)),
        ("closedPercent in body should be less than or equal", (("rollout", {"limits": {"closedPercent": 101}}),)),
        ("spec.rollout.paused in body must be of type boolean", (("rollout", {"paused": "yes"}),)),
    ],
    "JailPool": [
        *(("spec.allowedSources[0] in body should match", (("allowedSources", [source]),)) for source in NO_SOURCES),
        ("spec.allowedSources: Too many: 65", (("allowedSources", [f"unix:/{n}" for n in range(65)]),)),
        ("spec.allowedSources[1]: Duplicate value", (("allowedSources", ["unix:/a"] * 2),)),
        ("In and NotIn need values", (("allowedNamespaces", selecting("In")),)),
        ("In and NotIn need values", (("allowedNamespaces", selecting("Exists", "a")),)),
        ('operator: Unsupported value: "Is"', (("allowedNamespaces", selecting("Is", "a")),)),
        ("key in body should match", (("allowedNamespaces", selecting("DoesNotExist", key="a b")),)),
        ("values[0] in body should match", (("allowedNamespaces", selecting("NotIn", "a b")),)),
        ("allowedNamespaces.names[0] in body should match", (("allowedNamespaces", {"names": ["*"]}),)),
        ("metadata.name: Too long: may not be more than 52", (("metadata.name", "a" * 53),)),
        ("spec.directory is too long for sockets beneath it", (("directory", "/" + "d" * 60),)),
        ("spec.provider: Required value", (("provider", ABSENT),)),
        ('spec.provider: Unsupported value: "cloud"', (("provider", "cloud"),)),
        ("hosts is missing; providers linux and bhyve need at least one", (("hosts", ABSENT),)),
        ("hosts is missing; providers linux and bhyve need at least one", (("hosts", []),)),
        ("hosts is given, but provider local has none", (("provider", "local"),)),
        ("spec.hosts[1]: Duplicate value", (("hosts.1", HOST),)),
        ("hostKey: Required value", (("hosts.0.hostKey", ABSENT),)),
        ("not a host key", (("hosts.0.hostKey", "host1 ssh-ed25519 AAAA"),)),
        ("port in body should be less than or equal to 65535", (("hosts.0.port", 65536),)),
        ("user in body should match", (("hosts.0.user", "-oProxyCommand=sh"),)),
        ("address in body should match", (("hosts.0.address", "-oProxyCommand=sh"),)),
        ("privateKeySecret.namespace: Required value", (("hosts.0.privateKeySecret", {"name": "a"}),)),
        ("spec.replicas in body should be less than or equal to 256", (("replicas", 257),)),
        ("spec.replicas in body should be greater than or equal to 0", (("replicas", -1),)),
        ("too few addresses", (*LOCAL, ("replicas", 7), ("network", {"addresses": "127.0.10.0/29"}))),
        ("too few addresses", (*LOCAL, ("replicas", 255))),
        ("too few addresses", (*LOCAL, ("replicas", 3), ("network", {"addresses": "fd00::/126"}))),
        ("not a range of addresses", (("network", {"addresses": "127.0.10.1"}),)),
        ("not a range of addresses", (("network", {"addresses": "127.0.10.0/33"}),)),
        ("the range does not begin at this address", (("network", {"addresses": "127.0.10.1/24"}),)),
        ("monitorPort in body should be greater than or equal to 1", (("network", {"monitorPort": 0}),)),
        ("spec.directory in body should match", (("directory", "var/lib"),)),
        *(("spec.directory in body should match", (("directory", f"/var/{part}"),)) for part in SPECIAL),
        (PLAIN, (("directory", "/var/../etc"),)),
        ("spec.image in body should match", (("image", "../other"),)),
        ("spec.image in body should match", (("image", "a/b"),)),
        *(("spec.data.source in body should match", (("data", {"source": f"/{part}"}),)) for part in CONTROLS),
        *(
            ("spec.keyValue.seed in body should match", (("keyValue", {"mode": "Managed", "seed": f"/{part}"}),))
            for part in CONTROLS
        ),
        ("spec.data.source: Required value", (("data", {"mode": "Copy"}),)),
        ('spec.data.mode: Unsupported value: "Move"', (("data", {"source": "/a", "mode": "Move"}),)),
        ("only $(IMAGE)/ is replaced here", (("data", {"source": "$(DATA)/a"}),)),
        ("only $(IMAGE)/ is replaced here", (("keyValue", {"mode": "Managed", "seed": "$(IMAGE)s/a"}),)),
        ("the path leads out of the image", (("data", {"source": "$(IMAGE)/a/.."}),)),
        ("the path leads out of the image", (("keyValue", {"mode": "Managed", "seed": "$(IMAGE)/../../b"}),)),
        ("seed fills a managed store", (("keyValue", {"seed": "/a"}),)),
        ("the provider sets IMAGE, DATA, MEMBER_ADDRESS and REDIS_SOCKET itself", (("variables", [{"name": "DATA"}]),)),
        ("runtimes[1]: Duplicate value", (("runtimes", [runtime("/lib"), runtime("/usr")]),)),
        ("runtimes[0].name in body should match", (("runtimes", [runtime("/lib", name="--data")]),)),
        ("runtimes[0].paths: Required value", (("runtimes", [{"name": "java"}]),)),
        ("paths in body should have at least 1 items", (("runtimes", [runtime()]),)),
        *(
            ("paths[0] in body should match", (("runtimes", [runtime(path)]),))
            for path in ("/", "lib", "/lib/", "//lib", "/lib//a", "$(A-B)/lib", "$(A)lib", "/a\nb", "/a\x00")
        ),
        (PLAIN, (("runtimes", [runtime("/lib/../etc")]),)),
        (PLAIN, (("runtimes", [runtime("$(JAVA)/.")]),)),
        ("the path contains a comma; give it as the value of a variable", (("runtimes", [runtime("/a,b")]),)),
        ("a runtime has no data of the member", (("runtimes", [runtime("$(DATA)/a")]),)),
        ("a runtime has no data of the member", (("runtimes", [runtime("/a/$(REDIS_SOCKET)")]),)),
        ("maxUnavailable in body should match", (("update", {"maxUnavailable": "0%"}),)),
        ("maxUnavailable in body should be greater than or equal to 1", (("update", {"maxUnavailable": 0}),)),
        ('policy: Unsupported value: "Oldest"', (("scaleIn", {"policy": "Oldest"}),)),
        ("drainSeconds in body should be less than or equal to 3600", (("scaleIn", {"drainSeconds": 3601}),)),
        ("failureThreshold in body should be greater than or equal to 1", (("healing", {"failureThreshold": 0}),)),
        *[(message, (*BHYVE, *changes)) for message, changes in BHYVE_CASES],
        (OTHERS, (BHYVE[1],)),
        (OTHERS, (("jails", 4),)),
        (OTHERS, (("requires", "None"),)),
        (OTHERS, (("network", {"machines": "198.51.100.0/24"}),)),
        (OTHERS, (("network", {"uplink": "em0"}),)),
        (OTHERS, (("network", {"subnet": "127.0.0.0/8"}),)),
        (OTHERS, (("network", {"gateway": "198.51.100.1"}),)),
        (OTHERS, (("network", {"nameservers": []}),)),
        ("a host's state belongs to provider bhyve", (("hosts.0.state", "Gone"),)),
    ],
    "OfflineAnalysis": [
        ("metadata.name: Too long: may not be more than 52", (("metadata.name", "a" * 53),)),
        ("spec.schedule: Required value", (("schedule", ABSENT),)),
        (SCHEDULE, (("schedule", "@daily"),)),
        (SCHEDULE, (("schedule", "0 3 * *"),)),
        (SCHEDULE, (("schedule", "0 0 3 * * *"),)),
        (SCHEDULE, (("schedule", "0 3 * * mon; reboot"),)),
        ("spec.timeZone in body should match", (("timeZone", "../etc/passwd"),)),
        ('spec.concurrencyPolicy: Unsupported value: "Queue"', (("concurrencyPolicy", "Queue"),)),
        ('spec.scope: Unsupported value: "all"', (("scope", "all"),)),
        ("deadlineSeconds in body should be greater than or equal to 1", (("deadlineSeconds", 0),)),
        ("startingDeadlineSeconds in body should be greater than or equal to 1", (("startingDeadlineSeconds", 0),)),
        ("leave scope at All", (("shards", {"count": 2}), ("scope", "Active"))),
    ],
    "MemberReading": [
        ("give one of log, explain and audit", (("log", ABSENT),)),
        ("give one of log, explain and audit", (("audit", {}),)),
        ("give pipeline, unless it is the log of a TaskRun", (("pipeline", ABSENT),)),
        ("give pipeline, unless it is the log of a TaskRun", (("log", {"taskRun": "r"}),)),
        ("give taskRun, or task and the pipeline", (("log", {}),)),
        ("give taskRun, or task and the pipeline", (("log", {"task": "t", "taskRun": "r"}),)),
        ("region is the principal's", (("log", {"task": "t", "region": "de"}),)),
        ("give principal, or a task without users", (("log", ABSENT), ("explain", {"conduit": "/a"}))),
        ("should match", (("publicKey", "not base64!"),)),
        ("Unsupported value", (("log", ABSENT), ("audit", {"kinds": ["nonsense"]}))),
        ("should be less than or equal to 1000", (("log", ABSENT), ("audit", {"limit": 1001}))),
    ],
    "AnalysisRun": [
        ("trigger Schedule needs offlineAnalysis and scheduledTime", (("trigger", "Schedule"),)),
        ("scheduledTime belongs to trigger Schedule", (("scheduledTime", "2026-03-01T12:00:00Z"),)),
        ("scheduledTime in body must be of type date-time", (("scheduledTime", "noon"),)),
        ("spec.bundle in body should match", (("bundle", "g" * 64),)),
        ("leave scope at All", (("shards", {"count": 2}), ("scope", "Active"))),
        ("leave full out", (("shards", {"count": 2}), ("full", True))),
        ("spec.shards.count in body should be less than or equal to 64", (("shards", {"count": 65}),)),
        ("spec.shards.count in body should be greater than or equal to 1", (("shards", {"count": 0}),)),
        ("spec.shards.count: Required value", (("shards", {}),)),
        ('unknown field "spec.shards.image"', (("shards", {"count": 2, "image": "example.org/mine"}),)),
    ],
    "Benchmark": [
        ("baseline is missing", (("modes", ["dynamic", "shai"]),)),
        ("spec.modes in body should have at least 2 items", (("modes", ["baseline"]),)),
        ("spec.modes[1]: Duplicate value", (("modes", ["baseline", "baseline"]),)),
        ("spec.sessionLengths[1]: Duplicate value", (("sessionLengths", [1, 1]),)),
        ("spec.sliceSeconds in body should be greater than or equal to 1", (("sliceSeconds", 0),)),
        ('spec.scenario: Unsupported value: "shop"', (("scenario", "shop"),)),
        ("spec.rounds in body must be of type integer", (("rounds", "many"),)),
        ("workers.count in body should be less than or equal to 16", (("workers", {"count": 17}),)),
        ('spec.scenario: Unsupported value: "unfriending"', (("scenario", "unfriending"),)),
        ("each worker needs a user", (("workers", {"count": 4}), ("concurrentUsers", 3))),
        ('workers.as: Unsupported value: "Pod"', (("workers", {"as": "Pod"}),)),
        ("spec.thresholds[1]: Duplicate value", (("thresholds", ["overhead>5%", "overhead>5%"]),)),
        ("spec.thresholds[0]: Too long", (("thresholds", ["x" * 129]),)),
        ("spec.thresholds[0]: Invalid value", (("thresholds", ['p99{phase="\\n"}>1ms']),)),
        ("spec.thresholds[0]: Invalid value", (("thresholds", ['p99{phase="\\u202e"}>1ms']),)),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "message", "changes"),
    [
        pytest.param(kind, message, changes, id=f"{kind}-{number}-{changes[0][0]}")
        for kind, cases in CASES.items()
        for number, (message, changes) in enumerate(cases)
    ],
)
def test_refused(devcluster: Cluster, kind: str, message: str, changes: tuple[Change, ...]) -> None:
    answer = try_create(devcluster, good(kind, "", *changes), "default")
    assert answer.status_code in (400, 422), answer.json()
    assert message in answer.json()["message"]


@pytest.mark.parametrize("kind", SPECS)
def test_what_the_cases_are_changes_of_is_accepted(devcluster: Cluster, kind: str) -> None:
    answer = try_create(devcluster, good(kind), "default")
    assert answer.status_code == 201, answer.json()
