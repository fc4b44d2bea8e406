# SPDX-License-Identifier: BSD-2-Clause
"""The settings from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shai_operator.control.leases import DURATION_SECONDS
from shai_operator.providers.linux import PYTHON

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The settings of one operator. Paths are absolute."""

    namespace: str
    """The operator's namespace, for releases, the authority and leases."""
    identity: str
    """The name of this process among operators: the pod, or host and process."""
    shai: Path
    """The `shai` program, which checks manifests."""
    images: Path
    """The directory of the images that pools name."""
    runtime: Path
    """A private directory for sockets and playbook runs; emptied at the end."""
    shared: Path
    """The private directory of all operators of this user."""
    probes: tuple[str, int]
    """Address and port of probes and metrics."""
    webhooks: tuple[str, int]
    """Address and port of the admission server."""
    webhook_host: str
    """The name or address at which the API server reaches the admission server."""
    host_python: str = PYTHON
    """On hosts of provider ``linux`` without systemd: the interpreter that has the package supervisor."""
    load_image: str = ""
    """The image of the pods that generate load as Jobs; empty: none do."""
    load_host: str = "127.0.0.1"
    """The address at which those pods reach this operator."""
    shard_image: str = ""
    """The image of the pods that compute shards of analyses; empty: none do."""
    shard_host: str = "127.0.0.1"
    """The address at which those pods reach this operator."""
    shard_megabytes: int = 512
    """The largest work of an analysis that is given to them, in MiB."""
    webhook_owner: str = ""
    """The ClusterRole with which the webhooks are deleted, if the operator has made them; empty: they stay."""
    lease_seconds: int = DURATION_SECONDS
    """After this time without a renewal, another replica leads."""
    workers: int = 4
    """Playbooks that run at the same time."""
    compare_seconds: float = 60.0
    """How often the watches are compared with the API server."""
    lag_seconds: float = 120.0
    """If a watch lags by more than this, the operator is unhealthy; after a restart, it watches anew."""
    scrape: Path | None = None
    """The directory for a Prometheus on this machine; None: there is none."""
    scrape_secret: str = ""
    """The Secret in the operator's namespace for a Prometheus in the cluster; empty: there is none."""
    cluster: str = "shai"
    """The value of the label `cluster` of targets."""


class SettingsError(Exception):
    """Something that the operator needs is missing; the text names it and the remedy."""


def check(settings: Settings) -> None:
    """Raise SettingsError when a program or directory does not exist."""
    if not settings.shai.is_file():
        raise SettingsError(f"{settings.shai} is missing: build it (make build), or give --shai")
    if not settings.images.is_dir():
        raise SettingsError(f"{settings.images} is not a directory: give --images")
