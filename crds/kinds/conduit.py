# SPDX-License-Identifier: BSD-2-Clause
"""Conduits, which hold a pipeline's data. The fields of a conduit depend on its kind."""

from __future__ import annotations

from crds.kinds import shared
from crds.schema import Schema, distinct, items, keyed, name, number, record, rule, switch, text, word

# The monitor's manifest package has the same table.
_NEEDS = {
    "file": ("paths",),
    "tuple": ("paths", "access"),
    "pipe": ("from", "to", "policy"),
    "channel": ("from", "to", "policy"),
    "connection": ("listen", "task"),
}
_TAKES = {
    "file": ("ingress", "egress", "directory", "type"),
    "tuple": ("ingress", "egress", "type"),
    "pipe": ("slots",),
    "channel": ("slots",),
    "connection": ("ingress", "egress", "service", "sessions"),
}
_TYPES = ("access-log", "conduit-ids", "topics", "tuples")
"""The shapes that the monitor can read; its package content has the same."""

_PIPES, _CHANNELS = 64, 32
"""Descriptor numbers that the wire protocol reserves."""

_SEGMENT = r"(\*|[^/*{}\x00]*(\{[A-Za-z_][A-Za-z0-9_]*\}[^/*{}\x00]*)*)"
_PATH = rf"^({_SEGMENT}(/{_SEGMENT})*(/\*\*)?|\*\*)$"

_GIVEN = {
    "ingress": "(has(self.ingress) && self.ingress)",
    "egress": "(has(self.egress) && self.egress)",
    "directory": "(has(self.directory) && self.directory)",
    "paths": "(has(self.paths) && size(self.paths) > 0)",
}
"""The CEL expressions for a field that is set, where `has` is not enough."""


def conduits() -> Schema:
    """Describe the conduits of a pipeline."""
    return keyed(
        "The conduits, which hold the data. Everything else is inaccessible to tasks.", _conduit(), by="name", most=256
    )


def rules() -> tuple[Schema, ...]:
    """Return the rules between a pipeline's conduits and the rest of its spec."""
    return (
        rule(
            "!has(self.conduits) || self.conduits.all(c, [has(c.from) ? c.from : '', has(c.to) ? c.to : '', "
            "has(c.task) ? c.task : ''].all(end, end == '' || end in self.tasks))",
            "a conduit's from, to or task is not one of the pipeline's tasks",
        ),
        rule(
            "!has(self.conduits) || has(self.keyValue) || !self.conduits.exists(c, c.kind == 'tuple')",
            "keyValue is missing; a conduit holds tuples",
        ),
        _slots("pipe", _PIPES),
        _slots("channel", _CHANNELS),
    )


def _slots(kind: str, most: int) -> Schema:
    return rule(
        f"!has(self.conduits) || self.conduits.filter(c, c.kind == '{kind}')"
        f".map(c, has(c.slots) ? c.slots : 1).sum() <= {most}",
        f"the pipeline has too many {kind}s; at most {most} slots are possible",
    )


def _given(field: str) -> str:
    return _GIVEN.get(field, f"has(self.{field})")


def _shapes() -> list[Schema]:
    made = []
    for kind, needs in _NEEDS.items():
        foreign = [field for field in _FIELDS if field not in (*needs, *_TAKES[kind])]
        made += [
            rule(
                f"self.kind != '{kind}' || ({' && '.join(map(_given, needs))})",
                f"a field is missing; a conduit of kind {kind} needs {', '.join(needs)}",
            ),
            rule(
                f"self.kind != '{kind}' || !({' || '.join(map(_given, foreign))})",
                f"a field does not belong here; a conduit of kind {kind} has no {', '.join(foreign)}",
            ),
        ]
    return made


def _typed() -> list[Schema]:
    foreign = " || ".join(map(_given, ("ingress", "egress", "directory")))
    return [
        rule(
            f"!has(self.type) || !({foreign} || "
            "has(self.access) && has(self.access.write) && size(self.access.write) > 0)",
            "a conduit with a type has no ingress, egress, directory and access.write: only the monitor writes it",
        ),
        # That a log has whole paths is checked by the monitor: to search them costs more than rules may.
        rule(
            "!has(self.type) || self.type != 'access-log' || self.kind == 'file'", "a log of type access-log is a file"
        ),
    ]


def _choice() -> Schema:
    return record(
        "One policy that one principal may choose.",
        {
            "by": text(
                'The principal who may choose it: a name, or "{name}" for what the path has in its place.',
                longest=1024,
            ),
            "policy": shared.policy_reference("The policy that may be chosen."),
        },
        required=("by", "policy"),
    )


def _path() -> Schema:
    return record(
        "The conduits that match a pattern, and their policy.",
        {
            "path": text(
                'Files ("/corpus/private/{owner}/**") or keys ("profile:{owner}"). "{name}" matches a segment or a '
                'part of it and can be used in the policy\'s arguments, "*" matches a segment, a final "**" all '
                "beneath.",
                longest=shared.PATH_LENGTH,
                pattern=_PATH,
            ),
            "policy": shared.policy_reference("The policy of all matching conduits."),
            "choices": items(
                "The policies that principals may choose for one file of an ingress conduit, in the place of its "
                "policy. Left out: nobody may.",
                _choice(),
                most=16,
            ),
        },
        required=("path", "policy"),
    )


def _commands(about: str) -> Schema:
    return distinct(about, text("A command, such as GET.", longest=64), most=32)


_FIELDS: dict[str, Schema] = {
    "ingress": switch("Whether its data come from outside the pipeline."),
    "egress": switch("Whether its data leave the pipeline."),
    "directory": switch("Whether new files under its paths get the same policy."),
    "paths": keyed(
        "The files or keys of the conduit; if several patterns match, the most specific one decides.",
        _path(),
        by="path",
        most=256,
    ),
    "access": record(
        "The allowed commands of the key-value store, by their effect on a tuple; all others are refused.",
        {
            "read": _commands("Commands that read, such as GET and LRANGE."),
            "write": _commands("Commands that change, such as SET and LPUSH."),
        },
    ),
    "slots": number(
        "The number of pipes or channels, one for each worker; 1 when left out. A pipeline can have 64 pipes and "
        "32 channels.",
        least=1,
        most=32,
    ),
    "from": name("The task that writes to it."),
    "to": name("The task that reads from it."),
    "policy": shared.policy_reference("The policy of the data in it."),
    "listen": text(
        "The address on which the task accepts connections, such as 127.0.0.1:8640; in a pool, one of its members' "
        "addresses, such as $(MEMBER_ADDRESS):8640. $(NAME) is replaced.",
        longest=255,
        rules=(
            rule(
                "self.contains('$(') || (self.matches('^([^:]+|[[][^]]+[]]):[0-9]{1,5}$') && "
                "isIP(self.substring(0, self.lastIndexOf(':')).replace('[', '').replace(']', '')) && "
                "int(self.substring(self.lastIndexOf(':') + 1)) <= 65535)",
                "not an address; expected a form such as 127.0.0.1:8640",
            ),
        ),
    ),
    "service": text(
        "Where users dial the connection, as host:port, such as search.example.org:443; listen when left out. "
        "Users sign it when they log in, so a login that another service relays is refused. $(NAME) is replaced.",
        longest=255,
        rules=(
            rule(
                "self.contains('$(') || (self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?|[[][0-9a-f:.]+[]]):"
                "[1-9][0-9]{0,4}$') && int(self.substring(self.lastIndexOf(':') + 1)) <= 65535 && size(self) <= 95)",
                "not a host and a port; expected a form such as search.example.org:443, in lower case",
            ),
        ),
    ),
    "task": name("The task that accepts the connections."),
    "sessions": number(
        "How many users may have a session at the same time; 32 when left out. A session has a process of its own. "
        "Where sessions use pipes or channels, there are no more than slots.",
        least=1,
        most=4096,
    ),
    "type": word(
        'The shape of what its files or tuples contain: lines of access("Name", "Conduit", Time) that are only '
        'appended and are facts (access-log, of kind file); of numbers of conduits (conduit-ids); of topic("name") '
        "(topics); of relation(values) (tuples). Tasks then write through the monitor only, by shai_write; it reads "
        "each write and decides on it.",
        *_TYPES,
    ),
}


def _conduit() -> Schema:
    return record(
        "A set of conduits of one kind.",
        {
            "name": name("The name by which tasks refer to it; unique in the pipeline."),
            "kind": word(
                "The kind of conduit: files (needs paths), tuples of the key-value store (paths, access), pipes or "
                "descriptor channels between two tasks (from, to, policy), or connections (listen, task).",
                *_NEEDS,
            ),
            **_FIELDS,
        },
        required=("name", "kind"),
        rules=(
            *_shapes(),
            rule("!has(self.from) || !has(self.to) || self.from != self.to", "from and to are the same task"),
            *_typed(),
            rule(
                "self.kind != 'file' || !has(self.paths) || self.paths.all(p, p.path.startsWith('/'))",
                "a path does not begin with /; expected paths beneath the data directory",
            ),
        ),
    )
