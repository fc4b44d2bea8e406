# SPDX-License-Identifier: BSD-2-Clause
"""The installations in which sessions are measured: Sys-E's front end with a light search engine, in variants."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from loadgen.datasets import population
from loadgen.driving import addresses
from loadgen.driving.protocol import SIGNED, ProtocolError, Session
from loadgen.results import sessions
from loadgen.stacks import launcher, light, manifests
from loadgen.stacks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.datasets.population import Person
    from loadgen.measuring.place import Place
    from loadgen.stacks.launcher import Variant
    from loadgen.stacks.stack import Stack
    from loadgen.stacks.supervisor import Supervisor

FORMERLY_SIGNED = "shai-session-v1\n{user}\n{nonce}"
"""What a login signed before it named its service."""

_PIPELINE = "syse"
_HOST = "127.0.0.1"
_VARIANTS = {
    **{variant.name: variant for variant in launcher.TWINS},
    sessions.FORKED: launcher.FORKED,
    sessions.SHAI: launcher.CONFINED,
    sessions.PROCESS: launcher.A_PROCESS_EACH,
}
_OTHERS = {sessions.BESIDE: replace(launcher.CONFINED, name=sessions.BESIDE)}


@contextlib.contextmanager
def started(
    place: Place, other: Place | None, supervisor: Supervisor, tell: Callable[[str], None]
) -> Iterator[dict[str, Stack]]:
    """Start all installations, and one under enforcement of another checkout, if there is one; end them at the end."""
    with contextlib.ExitStack() as launched:
        stacks: dict[str, Stack] = {}
        for where, variants in ((place, _VARIANTS), (other, _OTHERS)):
            if where is not None:
                stacks |= launched.enter_context(_launched(where, variants, supervisor, tell))
        if other is not None:
            set_signed(stacks[sessions.BESIDE], population.load(place.data).people[0])
        yield stacks


@contextlib.contextmanager
def _launched(
    place: Place, variants: Mapping[str, Variant], supervisor: Supervisor, tell: Callable[[str], None]
) -> Iterator[dict[str, Stack]]:
    documents = light.derive(manifests.read(place.manifests), _PIPELINE)
    serving = (light.ENGINE, light.FRONT_END)
    with launcher.launching(place.site, documents, _PIPELINE, supervisor, serving) as stacks:
        found = {}
        for name, variant in variants.items():
            tell(f"starting {name}")
            stack = found[name] = stacks.launch(variant, (_HOST, free_port(_HOST)))
            stack.analyze()
            stack.serve()
        yield found


def set_signed(stack: Stack, person: Person) -> None:
    """Find out what a login signs in another version of Sys-E; ProtocolError when a person cannot log in."""
    source = addresses.source_address(person.region, 1)
    for text in (SIGNED, FORMERLY_SIGNED):
        stack.signed = text
        session = Session(stack.front_end, source)
        try:
            session.login(person)
        except ProtocolError as error:
            refusal = error
        else:
            return
        finally:
            session.close()
    raise refusal
