# SPDX-License-Identifier: BSD-2-Clause
"""A pool whose workers do what their users request, and users who would notice a partly applied bundle."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from testing.cluster import ROOT
from tests.running.objects import policy, resource

if TYPE_CHECKING:
    from pathlib import Path

PORT = 7070
RUNTIMES = [{"name": "probe", "paths": ["$(IMAGE)", "/lib", "/usr/lib", "/lib64"]}]
"""What the workers of `definitions` execute."""
KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
OPEN = "policy {name} {{\n  read :- true.\n}}\n"
CLOSED = 'policy {name} {{\n  read :- sKeyIs("nobody").\n}}\n'
WORKER = "policy worker(user, region) {\n  read :- sKeyIs(user), sRegionIs(region).\n}\n"


def image(images: Path) -> None:
    """Make the image ``default`` with the probe in it."""
    made = images / "default"
    for name in ("bin", "runtime", "probe"):
        (made / name).mkdir(parents=True)
    for program in ("shai", "shai-supervisor"):
        shutil.copy(ROOT / "build" / "bin" / program, made / "bin")
    shutil.copy(ROOT / "build" / "runtime" / "libshai.so", made / "runtime")
    sources = ROOT / "runtime" / "tests" / "probe"
    command = [
        "gcc", "-std=c11", "-D_GNU_SOURCE", f"-I{ROOT}/runtime/include", "-o", str(made / "probe" / "probe_worker"),
        str(sources / "probe_worker.c"), *map(str, sorted(sources.glob("worker_*.c"))),
        f"-L{made}/runtime", "-lshai", "-Wl,-rpath,$ORIGIN/../runtime",
    ]  # fmt: skip
    subprocess.run(command, check=True)


def data(directory: Path) -> None:
    """Make two documents; the first line of each is its name."""
    (directory / "docs").mkdir(parents=True)
    for name in ("x", "y"):
        (directory / "docs" / name).write_text(f"{name}\n")


def definitions(pool: str, *, x: str, y: str, rollout: dict[str, Any]) -> list[dict[str, Any]]:
    """Write the pipeline with documents x and y under policies of these texts."""
    principal = f"ann-{pool}"
    conduits = [
        {
            "name": "documents",
            "kind": "file",
            "ingress": True,
            "paths": [{"path": f"/docs/{name}", "policy": {"name": f"on-{name}"}} for name in ("x", "y")],
        },
        {"name": "web", "kind": "connection", "egress": True, "listen": f"$(MEMBER_ADDRESS):{PORT}", "task": "worker"},
    ]
    return [
        # First, because objects are applied one by one: a change is not rolled out under earlier settings.
        resource(
            "Pipeline",
            "probe",
            pool=pool,
            tasks=["worker"],
            conduits=conduits,
            rollout=rollout,
            expect=[
                {"task": "worker", "from": {"conduit": "population", "says": "home", "parameters": ["user", "region"]}}
            ],
        ),
        policy("on-x", x.format(name="on_x")),
        policy("on-y", y.format(name="on_y")),
        policy("worker", WORKER),
        resource(
            "FactSource",
            "facts",
            inline=[
                {"conduit": "regions", "says": "prefix", "tuples": [["127.0.0.0/8", "de"]]},
                {"conduit": "population", "says": "home", "tuples": [[principal, "de"]]},
            ],
        ),
        resource("Principal", principal, publicKey=public_key(), region="de"),
        resource(
            "Task",
            "worker",
            command=["$(IMAGE)/probe/probe_worker"],
            runtimeName="probe",
            parameters=["user", "region"],
            taint={"name": "worker", "arguments": {"user": "{user}", "region": "{region}"}},
            reads=["documents"],
            writes=["web"],
        ),
    ]


def public_key() -> str:
    return KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


class SessionError(Exception):
    """The session was refused or ended early, as happens when bundles are swapped."""


def visit(address: str, principal: str) -> frozenset[str]:
    """Have one session with a member and return which documents it could read; each is requested twice."""
    with socket.create_connection((address, PORT), timeout=10) as connection:
        lines = connection.makefile("r")

        def ask(text: str) -> str:
            connection.sendall(f"{text}\n".encode())
            line = lines.readline()
            if not line:
                raise SessionError(f"the connection ended after {text!r}")
            return line.strip()

        nonce = ask("nonce").split()[-1]
        signed = KEY.sign(f"shai-session-v2\n{address}:{PORT}\nprobe\n{principal}\n{nonce}".encode()).hex()
        answer = ask(f"authenticate {principal} {signed}")
        if not answer.startswith("bound"):
            raise SessionError(answer)
        seen = [ask(f"read {number}") for number in (1, 2, 1, 2)]
        connection.sendall(b"quit\n")
    read = [line.removeprefix("text ") for line in seen if line.startswith("text ")]
    if Counter(read) != Counter(sorted(set(read)) * 2):
        raise AssertionError(f"one session saw two states: {seen}")
    return frozenset(read)


@dataclass
class Visitors:
    """Users who visit members all the time, one user for each member. Use it as a context."""

    principal: str
    addresses: list[str]
    seen: dict[str, Counter[frozenset[str]]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for address in self.addresses:
            self.seen[address] = Counter()
            thread = threading.Thread(target=self._visit, args=(address,))
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _visit(self, address: str) -> None:
        while not self._stop.wait(0.02):
            try:
                self.seen[address][visit(address, self.principal)] += 1
            except (SessionError, OSError):
                self.refused[address] += 1
            except AssertionError as error:
                self.wrong.append(str(error))
