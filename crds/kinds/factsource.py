# SPDX-License-Identifier: BSD-2-Clause
"""FactSource and Principal: the facts that policies use."""

from __future__ import annotations

from crds import condition
from crds.kinds import shared
from crds.resource import Column, Resource, condition_column
from crds.schema import distinct, items, keyed, name, number, record, rule, text, value, word

_DAY = 24 * 3600
_READY = condition.validity("Whether it can be used.")
_ALLOWED = condition.validity("Whether it can be used, and the pools of the namespace allow it.", "SourceNotAllowed")

_ONE_SOURCE = rule(
    "[has(self.inline), has(self.file), has(self.redis), has(self.http)].exists_one(given, given)",
    "expected exactly one of inline, file, redis and http",
)
_ONE_STORE = rule(
    "(has(self.keys) && size(self.keys) > 0) != has(self.stream)", "expected exactly one of keys and stream"
)
_URL = rule(
    "self.contains('$(') || (isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' "
    "&& !self.matches('^[a-z]+://[^/?#]*@'))",
    "not a URL to fetch facts from; expected a form such as https://facts.example.org/friends, without a password",
)
_MACHINE_PATH = r"^(/|\$\()"
_PLAIN = rule("!self.matches('(^|/)[.]{1,2}(/|$)')", "the path has a segment . or ..; expected a plain path")


def _says() -> dict[str, object]:
    return text('The predicate: friend in "friends/alice" says friend("bob").', longest=shared.PREDICATE_LENGTH)


_STATEMENT = record(
    "Tuples of one statement: the conduit says says(tuple) for each of them.",
    {
        "conduit": text('The conduit that says it, such as "friends/alice".', longest=shared.CONDUIT_LENGTH),
        "says": _says(),
        "tuples": items(
            "The tuples. All of one statement have the same number of values.",
            items(
                "The values of one tuple.",
                value('A text or a whole number; "1" and 1 differ.', longest=4096),
                most=16,
            ),
            most=65536,
        ),
    },
    required=("conduit", "says"),
)

_INTERVAL = number("How often it is read again, in seconds.", least=1, most=_DAY, default=30)

_RELATION = record(
    "One relation: friend(name: string).",
    {
        "name": text('The predicate: friend in "friends/alice" says friend("bob").', longest=shared.PREDICATE_LENGTH),
        "arguments": items(
            "The values of each tuple, in order.",
            record(
                "One value.",
                {
                    "name": text("What it is, for people.", longest=64),
                    "type": word(
                        "Its type; any: whatever the fact has.", "string", "integer", "time", "any", default="string"
                    ),
                },
            ),
            most=16,
            least=1,
        ),
        "conduits": items(
            'Patterns of the conduits that say it: "friends/{user}". Left out: any conduit may.',
            text("One pattern.", longest=shared.CONDUIT_LENGTH),
            most=64,
        ),
    },
    required=("name", "arguments"),
)

FACT_SOURCE = Resource(
    kind="FactSource",
    plural="factsources",
    short="shfacts",
    about="A source of facts. Policies refer to facts: who is whose friend, what is blocked where. They "
    "take effect on all members at once, without a rollout.",
    spec=record(
        "The source, exactly one of inline, file, redis and http, and the relations that it declares.",
        {
            "relations": items(
                "The relations that the source declares. If there are any, facts that contradict them are refused, and "
                "policies are compared with them. All sources of a namespace have to declare a relation alike.",
                _RELATION,
                most=256,
            ),
            "inline": items(
                "A few facts, given here. The whole object has 1 MiB of JSON at most: for more, use another source.",
                _STATEMENT,
                most=4096,
            ),
            "file": record(
                "A file of JSON lines, each with conduit, says and tuples.",
                {
                    "path": text(
                        "Its path in each member's data directory; starts with a slash.",
                        longest=shared.PATH_LENGTH,
                        pattern=shared.ABSOLUTE_PATH,
                        rules=(_PLAIN,),
                    )
                },
                required=("path",),
            ),
            "redis": record(
                "A Redis store: exactly one of keys and stream.",
                {
                    "socket": text(
                        "Path of its unix socket on the member: $(REDIS_SOCKET), or one that the pool allows. "
                        "$(NAME) is replaced.",
                        longest=shared.PATH_LENGTH,
                        pattern=_MACHINE_PATH,
                    ),
                    "keys": items(
                        "Keys whose members become facts: of sets, lists, strings and the fields of hashes.",
                        record(
                            "Keys of one pattern.",
                            {
                                "pattern": text(
                                    'The keys; "{name}" matches a part of them: "friends:{user}".',
                                    longest=shared.CONDUIT_LENGTH,
                                ),
                                "conduit": text(
                                    'The conduit that says it; may use the pattern\'s names: "friends/{user}".',
                                    longest=shared.CONDUIT_LENGTH,
                                ),
                                "says": _says(),
                            },
                            required=("pattern", "conduit", "says"),
                        ),
                        most=64,
                    ),
                    "stream": record(
                        "A stream of changes; each entry adds or removes one fact.",
                        {"key": text("The stream's key.", longest=shared.CONDUIT_LENGTH)},
                        required=("key",),
                    ),
                    "intervalSeconds": _INTERVAL,
                },
                required=("socket",),
                rules=(_ONE_STORE,),
            ),
            "http": record(
                "An HTTP endpoint that answers with JSON lines, as in a file.",
                {
                    "url": text(
                        "Its URL, http or https, without a password; the pool has to allow it. $(NAME) is replaced.",
                        longest=4096,
                        rules=(_URL,),
                    ),
                    "intervalSeconds": _INTERVAL,
                    "caFile": text(
                        "File on the member with the certificate authorities for the server, in PEM; "
                        "the system's when left out. $(NAME) is replaced.",
                        longest=shared.PATH_LENGTH,
                        pattern=_MACHINE_PATH,
                    ),
                },
                required=("url",),
            ),
        },
        rules=(_ONE_SOURCE,),
    ),
    conditions={"Ready": _ALLOWED},
    columns=(
        condition_column("Ready", "Ready"),
        condition_column("Reason", "Ready", "reason"),
        condition_column("Message", "Ready", "message", wide=True),
    ),
)

PRINCIPAL = Resource(
    kind="Principal",
    plural="principals",
    short="shuser",
    namespaced=False,
    about="A user or a service that can authenticate. Pools know it at once, without a rollout.",
    spec=record(
        "The identity.",
        {
            "publicKey": text(
                "Its Ed25519 public key: 64 hexadecimal digits.",
                longest=64,
                rules=(
                    rule(
                        "self.matches('^[0-9a-fA-F]{64}$')",
                        "not an Ed25519 public key; expected 64 hexadecimal digits",
                    ),
                ),
            ),
            "allowedNamespaces": record(
                "The namespaces whose pipelines know it: it can log in there, and its attributes are facts there. Left "
                "out: all namespaces. Only on Kubernetes.",
                {"names": distinct("The namespaces, by name.", name("Name of a namespace."), most=64)},
            ),
            "region": text("The region from which it is expected to connect.", longest=63),
            "attributes": keyed(
                'What else is known: facts "principals/<name>" says attribute(name, value).',
                record(
                    "One attribute.",
                    {
                        "name": text("Its name.", longest=64),
                        "value": text("Its value.", longest=1024),
                    },
                    required=("name", "value"),
                ),
                by="name",
                most=64,
            ),
        },
        required=("publicKey",),
    ),
    conditions={"Ready": _READY},
    columns=(
        Column("Region", ".spec.region"),
        condition_column("Ready", "Ready"),
        Column("Key", ".spec.publicKey", wide=True),
    ),
)
