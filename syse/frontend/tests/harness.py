# SPDX-License-Identifier: BSD-2-Clause
"""Runs the real syse-frontend against a real Redis, a fake monitor and a fake search engine.

Real: the binary, libshai, Redis, HTTP, signatures, documents on disk. Fake: the monitor (it
registers the task, and in the monitored modes binds sessions without confining anything, for
one worker at a time), the supervisor (see stand_in_supervisor.c) and the engine (a function
from a query to conduit numbers).
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import secrets
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if TYPE_CHECKING:
    from collections.abc import Callable

BUILD = Path(__file__).resolve().parents[3] / "build" / "syse"
SUPERVISOR = BUILD / "frontend" / "tests" / "stand_in_supervisor"
PIPELINE = "syse"
ASSETS = {
    "search": ["--advertisements", str(BUILD / "advertisements.txt")],
    "interests": ["--topics", str(BUILD / "topics.txt")],
    "support": [],
}
HEADER = struct.Struct("<HHIQ")
REGISTER, AUTHENTICATE, OPEN, RESET, WRITE, CHOICES, CHOOSE = 1, 2, 3, 4, 5, 6, 7
REGISTERED, CONNECTED, BOUND, OPENED, TRANSFER, WRITTEN, OFFERED, CHOSEN = 64, 65, 66, 67, 68, 70, 71, 72
WIRE_VERSION = 4
BASELINE, DYNAMIC, AUDIT = 0, 1, 3
MODE_NAMES = {BASELINE: "baseline", DYNAMIC: "dynamic", AUDIT: "audit"}
BOUND_KEYVALUE = 2
EACCES = 13
NONCE = "0123456789abcdef" * 4
PATIENCE_SECONDS = 180  # for what happens at once, on a busy machine, too
FIRST_PRIVATE = 400  # the harness's own descriptors are above every reserved number


def key_of(user: str) -> Ed25519PrivateKey:
    """Make a user's login key; it is always the same."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"test\n{user}".encode()).digest())


def sign(user: str, service: str, principal: str, nonce: str) -> str:
    """Sign a session's nonce for principal and the service that was dialled with user's key."""
    return key_of(user).sign(f"shai-session-v2\n{service}\n{PIPELINE}\n{principal}\n{nonce}".encode()).hex()


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def _inherited() -> set[int]:
    """Return the descriptors that the shell or the test's runner has left open for every program."""
    inherited = set()
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError):  # the directory's own
            if number > 2 and os.get_inheritable(number):
                inherited.add(number)
    return inherited


def _high(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE)


class FrontEnd:
    """A running front end; use as a context manager."""

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 4,
        mode: int = BASELINE,
        serve: str = "search",
        options: tuple[str, ...] = (),
        engine: Callable[[dict[str, Any]], list[int] | None] = lambda _query: [],
    ) -> None:
        """Prepare; nothing is started before __enter__."""
        self.directory = directory
        self.workers = workers
        self.mode = mode
        self.region = "" if mode == BASELINE else "de"  # only a monitor knows the region
        self.options = options
        self.engine = engine
        self.queries: list[dict[str, Any]] = []
        self.lines: list[bytes] = []
        self.refused: set[int] = set()
        self.closed: set[str] = set()
        self.resets = 0
        self.nonces: list[bytes] = []
        self.bound: list[str] = []
        self.written: list[tuple[str, str]] = []
        self.offers: dict[int, tuple[str, list[str]]] = {}
        self.serve = serve
        self._documents = 0
        self._running = True

    # ------------------------------------------------------------- start, stop

    def __enter__(self) -> Self:
        """Start Redis, the engine, the monitor and the front end."""
        (self.directory / "view").mkdir()
        (self.directory / "classes").write_bytes(bytes(4 * 4096))
        self._start_redis()
        self._write_keys()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.service = f"127.0.0.1:{self.port}"
        self.monitor, task_side = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._engine_ends: list[tuple[int, socket.socket]] = []
        descriptors = self._descriptors(task_side)
        self.given = set(descriptors)
        self._spawn(descriptors)
        for descriptor in descriptors.values():
            os.close(descriptor)
        task_side.close()
        self._threads = [threading.Thread(target=self._serve_monitor), threading.Thread(target=self._serve_engine)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything; errors() has the front end's output."""
        self._running = False
        self.stop()
        self.monitor.close()
        for thread in self._threads:
            thread.join()
        for read_end, channel in self._engine_ends:
            os.close(read_end)
            channel.close()
        self.listener.close()
        self.redis.terminate()
        self.redis.wait()

    def stop(self) -> int:
        """Send SIGTERM to the zygote, through its supervisor if it has one, and return its exit status."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def _start_redis(self) -> None:
        self.keyvalue = self.directory / "redis.sock"
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.keyvalue), "--save", "", "--dir", "."]
        with (self.directory / "redis.log").open("wb") as log:
            self.redis = subprocess.Popen(command, cwd=self.directory, stdout=log)
        assert eventually(self._redis_listens), (self.directory / "redis.log").read_text(encoding="utf-8")

    def _redis_listens(self) -> bool:
        # The socket's file exists before the server listens on it.
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(self.keyvalue)) == 0

    def _write_keys(self) -> None:
        users = ["alice", "bob", "carol"]
        tuples = [[user, key_of(user).public_key().public_bytes_raw().hex()] for user in users]
        lines = [
            {"conduit": "friends/alice", "says": "friend", "tuples": [["bob"]]},
            {"conduit": "population", "says": "key", "tuples": tuples},
        ]
        self.keys = self.directory / "population.jsonl"
        self.keys.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def _descriptors(self, task_side: socket.socket) -> dict[int, int]:
        placed = {
            3: _high(task_side.fileno()),
            4: self._open(self.directory / "classes"),
            6: _high(self.listener.fileno()),
            16: self._open(self.directory / "view"),
        }
        # accept4 takes the lowest free number, and that has to be 7, or 8 in mode dynamic.
        for number in (5, 7) if self.mode == DYNAMIC else (5,):
            placed[number] = self._open(Path("/dev/null"))
        for slot in range(self.workers):
            read_end, write_end = os.pipe()
            placed[32 + slot] = _high(write_end)
            os.close(write_end)
            engine_side, worker_side = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if self.mode == BASELINE:  # else the supervisor reads the channel
                placed[96 + slot] = _high(worker_side.fileno())
            worker_side.close()
            self._engine_ends.append((read_end, engine_side))
        return placed

    @staticmethod
    def _open(path: Path) -> int:
        descriptor = os.open(path, os.O_RDONLY)
        high = _high(descriptor)
        os.close(descriptor)
        return high

    def _spawn(self, descriptors: dict[int, int]) -> None:
        self.status: int | None = None
        errors = (self.directory / "errors").open("wb")
        command = [
            str(BUILD / "syse-frontend"),
            "--page", str(BUILD / "page.html"), "--serve", self.serve, *ASSETS[self.serve],
            "--workers", str(self.workers), *self.options,
        ]  # fmt: skip
        if self.mode == BASELINE:
            command += ["--keys", str(self.keys), "--keyvalue", str(self.keyvalue)]
        else:
            command = [str(SUPERVISOR), str(self.workers), *command]
        actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_CLOSE, number) for number in _inherited() - set(descriptors)]
        actions += [(os.POSIX_SPAWN_DUP2, errors.fileno(), 2)]
        actions += [(os.POSIX_SPAWN_DUP2, source, number) for number, source in descriptors.items()]
        mode = MODE_NAMES[self.mode] if self.mode == BASELINE else "shai"
        environment = {"SHAI_INSTANCE": "worker", "SHAI_MODE": mode}
        environment |= {"SHAI_SERVICE": self.service, "SHAI_PIPELINE": PIPELINE}
        self.pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
        errors.close()

    # ------------------------------------------------------------------- fakes

    def _serve_monitor(self) -> None:
        handlers = {
            REGISTER: self._on_register,
            AUTHENTICATE: self._on_authenticate,
            OPEN: self._on_open,
            RESET: self._on_reset,
            WRITE: self._on_write,
            CHOICES: self._on_choices,
            CHOOSE: self._on_choose,
        }
        while self._running:
            try:
                record = self.monitor.recv(65536)
            except OSError:
                return
            if not record:
                return
            _version, kind, _size, sequence = HEADER.unpack_from(record)
            handlers[kind](sequence, record[HEADER.size :])

    def _send(self, kind: int, sequence: int, body: bytes, descriptors: list[int] | None = None) -> None:
        record = HEADER.pack(WIRE_VERSION, kind, HEADER.size + len(body), sequence) + body
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        with contextlib.suppress(OSError):
            self.monitor.sendmsg([record], rights)

    def _on_register(self, sequence: int, _body: bytes) -> None:
        table = struct.pack("<256siHH", b"/shai/view", 16, 1, 1)
        for slot in range(self.workers):
            table += struct.pack("<256siHH", f"/shai/pipe/queries/{slot}".encode(), 32 + slot, 2, 2)
            table += struct.pack("<256siHH", f"/shai/channel/results/{slot}".encode(), 96 + slot, 3, 1)
        head = struct.pack("<iI256sII", 0, self.mode, b"", 1 + 2 * self.workers, 4096)
        self._send(REGISTERED, sequence, head + table)
        self._queue_connected()

    def _queue_connected(self) -> None:
        if self.mode == BASELINE:
            return
        self.nonces.append(secrets.token_bytes(32))
        texts = ("127.0.0.1", self.region, self.service, PIPELINE)
        body = struct.pack("<32s96s96s96s96sII", self.nonces[-1], *(text.encode() for text in texts), self.mode, 0)
        self._send(CONNECTED, 0, body)

    def _on_authenticate(self, sequence: int, body: bytes) -> None:
        principal = body[:96].rstrip(b"\0").decode()
        if body[96:].hex() != sign(principal, self.service, principal, self.nonces[-1].hex()):
            reason = f"the signature is not {principal}'s; check the login key".encode()
            self._send(BOUND, sequence, struct.pack("<iI256s96sII", EACCES, 0, reason, b"", 0, 0))
            return
        self.bound.append(principal)
        connection = self._keyvalue_connection()
        instance = f"worker({principal}, de)".encode()
        body = struct.pack("<iI256s96sII", 0, BOUND_KEYVALUE, b"", instance, 0, 0)
        self._send(BOUND, sequence, body, [connection.fileno()])
        connection.close()

    def _keyvalue_connection(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.keyvalue))
        return connection

    def _on_open(self, sequence: int, body: bytes) -> None:
        count = struct.unpack_from("<I", body)[0]
        conduits = struct.unpack_from("<64I", body, 8)[:count]
        status, opened = [0] * 64, []
        for i, conduit in enumerate(conduits):
            path = self._path(conduit)
            if conduit in self.refused or not path.exists():
                status[i] = EACCES
            else:
                opened.append(os.open(path, os.O_RDONLY))
        self._send(OPENED, sequence, struct.pack("<II64i", count, 0, *status), opened)
        for descriptor in opened:
            os.close(descriptor)

    def _on_write(self, sequence: int, body: bytes) -> None:
        _flags, size, conduit = struct.unpack_from("<II256s", body)
        self.written.append((conduit.rstrip(b"\0").decode(), body[264:].decode()))
        assert len(body) == 264 + size
        refused = EACCES if conduit.rstrip(b"\0").decode() in self.closed else 0
        reason = b"the policy of the conduit forbids it" if refused else b""
        self._send(WRITTEN, sequence, struct.pack("<iI256s", refused, 0, reason))

    def _on_choices(self, sequence: int, body: bytes) -> None:
        number = struct.unpack_from("<I", body)[0]
        if number not in self.offers:
            self._send(OFFERED, sequence, struct.pack("<iI256s96s256s", EACCES, 0, b"", b"", b""))
            return
        path, policies = self.offers[number]
        head = struct.pack("<iI256s96s256s", 0, len(policies), path.encode(), NONCE.encode(), policies[0].encode())
        self._send(OFFERED, sequence, head + b"".join(struct.pack("<256s", policy.encode()) for policy in policies))

    def _on_choose(self, sequence: int, body: bytes) -> None:
        number = struct.unpack_from("<I", body)[0]
        policy, signature = body[8:264].rstrip(b"\0").decode(), body[264:]
        path, policies = self.offers[number]
        quoted = (json.dumps(text) for text in (PIPELINE, self.bound[-1], path, policy))
        signed = "\n".join(["shai-policy-v1", *quoted, NONCE]).encode()
        if policy in policies and signature == key_of(self.bound[-1]).sign(signed):
            policies.sort(key=policy.__ne__)  # the one in force is the first
            self._send(CHOSEN, sequence, struct.pack("<iI256s", 0, 0, b""))
        else:
            self._send(CHOSEN, sequence, struct.pack("<iI256s", EACCES, 0, b"the signature is not of this choice"))

    def _on_reset(self, _sequence: int, _body: bytes) -> None:
        self.resets += 1
        self._queue_connected()

    def _serve_engine(self) -> None:
        with selectors.DefaultSelector() as selector:
            buffers = {}
            for read_end, channel in self._engine_ends:
                selector.register(read_end, selectors.EVENT_READ, channel)
                buffers[read_end] = b""
            while self._running:
                for key, _events in selector.select(timeout=0.1):
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fd)
                        continue
                    *lines, buffers[key.fd] = (buffers[key.fd] + data).split(b"\n")
                    for line in lines:
                        self._answer(line, key.data)

    def _answer(self, line: bytes, channel: socket.socket) -> None:
        self.lines.append(line)
        query = json.loads(line)
        self.queries.append(query)
        conduits = self.engine(query)
        if conduits is not None:
            self._transfer(channel, query["query"], conduits)

    def _transfer(self, channel: socket.socket, number: int, conduits: list[int]) -> None:
        transfer = struct.pack(f"<II{len(conduits)}I", number, 0, *conduits)
        if self.mode == BASELINE:
            channel.send(transfer)
        else:
            self._send(TRANSFER, 0, transfer)

    def answer_again(self, number: int, conduits: list[int]) -> None:
        """Send the answer to the query of this number on the first slot, whenever the query was sent."""
        self._transfer(self._engine_ends[0][1], number, conduits)

    # ------------------------------------------------------------------- facts

    def _path(self, conduit: int) -> Path:
        return self.directory / "view" / "1" / str(conduit >> 10) / str(conduit)

    def document(self, title: str, text: str | bytes, owner: str = "-", visibility: str = "public") -> int:
        """Add a document and return its conduit number."""
        self._documents += 1
        path = self._path(self._documents)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(f"title: {title}\nowner: {owner}\nvisibility: {visibility}\n\n".encode() + body)
        with (self.directory / "classes").open("r+b") as classes:
            classes.seek(4 * self._documents)
            classes.write(struct.pack("<I", 1))
        return self._documents

    def profile(self, user: str, friends: list[str], interests: list[str]) -> None:
        """Store a user's profile."""
        profile = {"user": user, "friends": friends, "interests": interests}
        self.redis_command("SET", f"profile:{user}", json.dumps(profile))

    def redis_command(self, *words: str) -> str:
        """Run a command in the key-value store and return what redis-cli prints."""
        command = ["redis-cli", "-s", str(self.keyvalue), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def zygote(self) -> int:
        """Return the process number of the zygote."""
        return self.pid if self.mode == BASELINE else _children(self.pid)[0]

    def children(self) -> list[int]:
        """Return the process numbers of the workers."""
        return _children(self.pid) if self.mode == BASELINE else _children(self.pid)[1:]

    def errors(self) -> str:
        """Return the front end's standard error."""
        return (self.directory / "errors").read_text(encoding="utf-8")

    def connect(self) -> socket.socket:
        """Open a connection for requests written by hand."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)

    def client(self) -> Client:
        """Open a connection for well-formed requests."""
        return Client(self.port, self.service)


class Client:
    """A well-behaved HTTP client with one connection."""

    def __init__(self, port: int, service: str) -> None:
        """Connect on the first request."""
        self.service = service
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Send a request and return status and body."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, fields)
        response = self.connection.getresponse()
        self.headers = response.headers
        return response.status, response.read()

    def json(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Send a request and return status and parsed body."""
        status, answer = self.ask(method, path, body)
        return status, json.loads(answer) if answer else None

    def login(self, principal: str, signer: str | None = None) -> tuple[int, Any]:
        """Log in as principal with signer's key, by default their own."""
        nonce = self.json("GET", "/session")[1]["nonce"]
        claim = {"principal": principal, "signature": sign(signer or principal, self.service, principal, nonce)}
        return self.json("POST", "/session", json.dumps(claim).encode())


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait until a condition holds; return whether it did."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def required(program: str) -> str:
    """Return a program's path; without it the tests here cannot run at all."""
    path = shutil.which(program)
    assert path is not None, f"{program} is missing: run scripts/setup.sh"
    return path
