# SPDX-License-Identifier: BSD-2-Clause
"""Keeps a run's processes together: what Locust's master and its workers tell each other is encrypted, with a key.

Locust itself believes whoever reaches the master's port, and any user of the machine does: counts could be forged, and
workers be led away. With CurveZMQ, a connection needs the server's public key. Here it is a secret: workers that are
forked know it from before, and others from an environment variable. A worker ends with its master.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import secrets
import signal
import sys

import zmq
from locust import argument_parser, runners
from locust.rpc import zmqrpc
from zmq.utils import z85

KEY = "SHAI_LOADGEN_KEY"
"""The environment variable with a text that master and workers share if workers are not forked."""

_SHORTEST_KEY = 32
_HEARTBEATS = 20
"""Of one second each: a worker that is late for longer is lost. A run waits for last counts for a minute."""
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_first = os.getpid()


def protect() -> None:
    """Encrypt what the processes of a run tell each other. Call it while Locust reads its file: before it forks."""
    # Three, with Locust: on a busy machine, that is no sign of a worker's end.
    runners.HEARTBEAT_LIVENESS = _HEARTBEATS
    given = os.environ.get(KEY, "")
    secret = z85.encode(hashlib.sha256((given or secrets.token_hex()).encode()).digest())
    public = zmq.curve_public(secret)
    connect = zmqrpc.BaseSocket.__init__

    @functools.wraps(connect)
    def encrypted(self: zmqrpc.BaseSocket, sock_type: int, ipv4_only: bool) -> None:  # noqa: FBT001 - as Locust's
        _check(given)
        connect(self, sock_type, ipv4_only)  # type: ignore[no-untyped-call]
        if sock_type == zmq.ROUTER:
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
            self.socket.setsockopt(zmq.CURVE_SERVER, 1)
        else:
            own_public, own_secret = zmq.curve_keypair()
            self.socket.setsockopt(zmq.CURVE_PUBLICKEY, own_public)
            self.socket.setsockopt(zmq.CURVE_SECRETKEY, own_secret)
            self.socket.setsockopt(zmq.CURVE_SERVERKEY, public)

    zmqrpc.BaseSocket.__init__ = encrypted  # type: ignore[method-assign]
    # At once: a worker that looked for its master later would wait for ever for one that has ended before.
    os.register_at_fork(after_in_child=_end_with_master)


def _check(given: str) -> None:
    options = argument_parser.get_parser().parse_args()
    if (options.master or options.worker) and len(given) < _SHORTEST_KEY:
        sys.exit(
            f"locust: --master and --worker need a key of {_SHORTEST_KEY} characters or more in the environment, the "
            f"same for all: export {KEY}=$(openssl rand -hex 32)"
        )


def _end_with_master() -> None:
    """Let a forked worker be killed when its master ends, however that ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != _first:
        sys.exit("locust: the master has ended")
