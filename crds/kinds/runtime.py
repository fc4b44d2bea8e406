# SPDX-License-Identifier: BSD-2-Clause
"""The runtimes of a JailPool: what tasks may execute and read beside their conduits."""

from __future__ import annotations

from crds.schema import items, keyed, name, record, rule, text

_RUNTIME = record(
    "A runtime.",
    {
        "name": name("The name, which Tasks give as spec.runtimeName."),
        "paths": items(
            "The files and directories. $(IMAGE) and the pool's variables are replaced, never those of a Pipeline.",
            text(
                "A path on the member's host or, with provider bhyve, in its jail.",
                longest=1024,
                pattern=r"^(\$\([A-Za-z_][A-Za-z0-9_]*\))?(/[^/\x00-\x1f\x7f]+)*$",
                rules=(
                    rule(
                        "!self.matches('(^|/)[.]{1,2}(/|$)')", "the path has a segment . or ..; expected a plain path"
                    ),
                    rule("!self.contains(',')", "the path contains a comma; give it as the value of a variable"),
                    rule(
                        "!self.contains('$(DATA)') && !self.contains('$(MEMBER_ADDRESS)') && "
                        "!self.contains('$(REDIS_SOCKET)')",
                        "expected $(IMAGE) or a variable of the pool; a runtime has no data of the member",
                    ),
                ),
            ),
            most=64,
            least=1,
        ),
    },
    required=("name", "paths"),
)

RUNTIMES = keyed(
    "What tasks may execute and read beside their conduits (programs, interpreters, libraries), by name. No "
    "policy decides about it, and every author of the pool's namespace can use every runtime: list nothing "
    "that not all of them may read. Left out: none, so that tasks run in mode baseline only.",
    _RUNTIME,
    by="name",
    most=16,
)
