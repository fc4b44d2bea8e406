# SPDX-License-Identifier: BSD-2-Clause
"""A server between the operator and the API server, in a thread of its own. The operator speaks plain HTTP to it."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import yaml

from testing import kubeconfigs

if TYPE_CHECKING:
    from pathlib import Path

_CLOSING_SECONDS = 0.25


class Interposed(ABC):
    """Runs while entered; `_serve` is what runs."""

    def __init__(self, kubeconfig: Path, directory: Path, name: str) -> None:
        self._config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = self._config["clusters"][0]["cluster"], self._config["users"][0]["user"]
        self._server: str = cluster["server"]
        self._tls = kubeconfigs.tls(cluster, user)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._port = 0
        self.kubeconfig = directory / f"{name}.kubeconfig"
        """The kubeconfig for the operator, once this is entered."""

    def __enter__(self) -> Self:
        """Start it."""
        self._thread.start()
        self._started.wait()
        self._config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._port}"}
        self._config["users"][0]["user"] = {}
        self.kubeconfig.write_text(yaml.safe_dump(self._config))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, and close all connections."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        # Connections with TLS end some turns of the loop after they are closed, and aiohttp does not say when.
        self._loop.run_until_complete(asyncio.sleep(_CLOSING_SECONDS))
        self._loop.close()

    @abstractmethod
    async def _serve(self) -> None:
        """Listen, set `_port` and `_started`, and serve until `_stop`."""

    @staticmethod
    async def _end_others() -> None:
        """End all other tasks of the thread."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
