# SPDX-License-Identifier: BSD-2-Clause
"""The operator's command line.

python -m shai_operator run --images DIR
python -m shai_operator metrics --output json
python -m shai_operator restore FILE…
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import kopf

from shai_operator import assembly
from shai_operator.cluster.client import Cluster, ClusterError
from shai_operator.control import descriptors
from shai_operator.control.leases import DURATION_SECONDS, Leases
from shai_operator.control.restoring import Restoration, RestoreError, documents
from shai_operator.control.settings import Settings, SettingsError, check
from shai_operator.metrics import declared
from shai_operator.monitors.errors import MonitorError
from shai_operator.providers import directories
from shai_operator.providers.authority import AuthorityError
from shai_operator.providers.linux import PYTHON

if TYPE_CHECKING:
    from collections.abc import Sequence

_IDENTITY = f"{socket.gethostname()}-{os.getpid()}"
_ROOT = Path(__file__).resolve().parents[2]
_SHORTEST_LEASE_SECONDS = 3
_FORMATS = {"text": kopf.LogFormat.FULL, "json": kopf.LogFormat.JSON}


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="shai_operator", description="The operator of Shai.")
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run until SIGTERM",
        description="Watches Shai's resources in the cluster that KUBECONFIG (or the pod's service account) names. "
        "Several may run: one leads, and all answer the API server (admission). On one machine, those of one user "
        "share the address of the webhooks, and each needs its own --probes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    run.add_argument("--namespace", default="shai-system", help="the operator's own namespace")
    run.add_argument("--images", type=Path, default=_ROOT / "build" / "images", help="directory of the images of pools")
    run.add_argument("--shai", type=Path, default=_ROOT / "build" / "bin" / "shai", help="the shai program")
    run.add_argument("--probes", type=_address, default=("127.0.0.1", 8080), help="address of probes and metrics")
    run.add_argument("--webhooks", type=_address, default=("127.0.0.1", 9443), help="address of the admission server")
    run.add_argument("--webhook-host", default="127.0.0.1", help="by which the API server reaches it")
    run.add_argument("--host-python", default=PYTHON, help="of hosts: the Python that has the package supervisor")
    run.add_argument("--load-image", default="", help="of pods that generate load (workers of Benchmarks as Job)")
    run.add_argument(
        "--load-host", type=ip_address, default="127.0.0.1", help="at which those pods reach this operator"
    )
    run.add_argument("--shard-image", default="", help="of pods that compute shards of analyses: this operator's own")
    run.add_argument(
        "--shard-host", type=ip_address, default="127.0.0.1", help="at which those pods reach this operator"
    )
    run.add_argument(
        "--shard-megabytes", type=int, default=512, metavar="MIB", help="the largest work of an analysis in shards"
    )
    run.add_argument(
        "--webhook-owner", default="", metavar="CLUSTERROLE", help="with which webhooks that it makes are deleted"
    )
    run.add_argument("--workers", type=int, default=4, help="playbooks that run at the same time")
    run.add_argument("--compare-seconds", type=float, default=60.0, help="how often watches are compared with lists")
    run.add_argument("--lag-seconds", type=float, default=120.0, help="how long a watch may lag behind those")
    run.add_argument(
        "--identity",
        default=_IDENTITY,
        help="name of this replica in leases; one with the same name takes them over at once, not when they expire",
    )
    run.add_argument(
        "--lease-seconds",
        type=_lease,
        default=DURATION_SECONDS,
        help="after this time without a word of the replica that leads, another one leads",
    )
    run.add_argument(
        "--scrape", type=Path, metavar="DIR", help="write targets and a certificate for a Prometheus on this machine"
    )
    run.add_argument(
        "--scrape-secret", default="", metavar="NAME", help="write the certificate into this Secret, in --namespace"
    )
    run.add_argument("--cluster", default="shai", help="value of the label cluster of targets")
    run.add_argument("--log-format", choices=_FORMATS, default="text")
    run.add_argument("--verbose", action="store_true", help="log every request")
    again = commands.add_parser(
        "restore",
        help="restore a backup",
        description="Restores the operator's Secret, Policies with their revisions, and JailPools with their releases, "
        "while no operator runs. docs/operations.md says how a backup is made.",
    )
    again.add_argument("files", nargs="+", type=Path, metavar="FILE", help="written by kubectl get -o json")
    again.add_argument("--namespace", default="shai-system", help="the operator's own namespace")
    again.add_argument(
        "--reseal",
        action="store_true",
        help="the Secret is lost: seal the revisions of the backup anew; whoever says so vouches for the files",
    )
    listing = commands.add_parser("metrics", help="list the operator's metrics", description="Lists the metrics.")
    listing.add_argument("--output", choices=("text", "json"), default="text")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0 after a clean stop, 1 when something that it needs is missing."""
    options = parser().parse_args(arguments)
    if options.command == "metrics":
        print(json.dumps(declared.as_json(), indent=2) if options.output == "json" else declared.as_text())
        return 0
    return _restore(options) if options.command == "restore" else _run(options)


def _restore(options: argparse.Namespace) -> int:
    try:
        left_out = asyncio.run(_restored(options))
    except (RestoreError, ClusterError, AuthorityError) as error:
        print(f"shai_operator: {error}", file=sys.stderr)
        return 1
    if left_out:
        print(f"shai_operator: {left_out} objects were left out", file=sys.stderr)
    return 1 if left_out else 0


async def _restored(options: argparse.Namespace) -> int:
    told: set[str] = set()

    def wait(leader: str) -> None:
        if leader not in told:
            told.add(leader)
            print(f"waiting until operator {leader} does not lead any more: stop all replicas", flush=True)

    backup = documents(options.files)
    cluster = Cluster()
    try:
        # Its own lease keeps operators from deciding about what is not all there yet.
        async with Leases(cluster, options.namespace, f"restore-{_IDENTITY}").lead(wait):
            restoration = Restoration(cluster, options.namespace, print, reseal=options.reseal)
            await restoration.run(backup)
        return restoration.left_out
    finally:
        await cluster.close()


def _run(options: argparse.Namespace) -> int:
    kopf.configure(verbose=options.verbose, log_format=_FORMATS[options.log_format])
    if not options.verbose:
        for chatty in ("httpx2", "aiohttp.access", "kopf.objects"):  # a line for every request, and for every event
            logging.getLogger(chatty).setLevel(logging.WARNING)
    descriptors.raise_limit()
    try:
        base = directories.base_directory(Path(tempfile.gettempdir()))
        # An operator that was killed leaves keys behind; the next one removes them.
        with directories.run_directory(base) as runtime:
            settings = _settings(options, base, runtime)
            check(settings)
            asyncio.run(assembly.run(settings))
    except (SettingsError, AuthorityError, ClusterError, MonitorError, directories.DirectoryError) as error:
        print(f"shai_operator: {error}", file=sys.stderr)
        return 1
    return 0


def _settings(options: argparse.Namespace, base: Path, runtime: Path) -> Settings:
    return Settings(
        namespace=options.namespace,
        identity=options.identity,
        shai=options.shai.resolve(),
        images=options.images.resolve(),
        runtime=runtime,
        shared=base,
        probes=options.probes,
        webhooks=options.webhooks,
        webhook_host=options.webhook_host,
        host_python=options.host_python,
        load_image=options.load_image,
        load_host=str(options.load_host),
        shard_image=options.shard_image,
        shard_host=str(options.shard_host),
        shard_megabytes=options.shard_megabytes,
        webhook_owner=options.webhook_owner,
        lease_seconds=options.lease_seconds,
        workers=options.workers,
        compare_seconds=options.compare_seconds,
        lag_seconds=options.lag_seconds,
        scrape=options.scrape,
        scrape_secret=options.scrape_secret,
        cluster=options.cluster,
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as 127.0.0.1:8080")
    return host, int(port)


def _lease(text: str) -> int:
    if not text.isdecimal() or int(text) < _SHORTEST_LEASE_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, at least {_SHORTEST_LEASE_SECONDS}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
