# SPDX-License-Identifier: BSD-2-Clause
"""What the command line decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How one operator runs. Paths are absolute."""

    namespace: str
    """Its own namespace: releases, the authority and leases are kept there."""
    identity: str
    """Names this process among operators: the pod, or host and process."""
    shai: Path
    """The `shai` program, for checking manifests."""
    images: Path
    """Directory of the images that pools name."""
    runtime: Path
    """Private directory for sockets and playbook runs; emptied at the end."""
    probes: tuple[str, int]
    """Where probes and metrics are served."""
    webhooks: tuple[str, int]
    """Where the admission server listens."""
    webhook_host: str
    """The name or address at which the API server reaches the admission server."""
    workers: int = 4
    """Playbooks that run at the same time."""
    compare_seconds: float = 60.0
    """How often the watches are compared with the API server."""
    lag_seconds: float = 120.0
    """A watch that is behind for longer makes the operator unhealthy: started again, it watches anew."""


class SettingsError(Exception):
    """Something that the operator needs is missing; the text names it and the remedy."""


def check(settings: Settings) -> None:
    """Raise SettingsError when a program or directory is not there."""
    if not settings.shai.is_file():
        raise SettingsError(f"{settings.shai} is missing: build it (make build), or give --shai")
    if not settings.images.is_dir():
        raise SettingsError(f"{settings.images} is not a directory: give --images")
