# SPDX-License-Identifier: BSD-2-Clause
"""The file by which load that is started by hand finds the running demo."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from demo import overlay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.workspace import Workspace


@contextlib.contextmanager
def announced(place: Workspace, socket: Path, scrape: Path | None, member: Path) -> Iterator[None]:
    """Say where the demo is while it runs; ``loadgen.scenarios.demonstration`` reads this.

    The file is always in the checkout, wherever the demo writes its other files. A reader never sees a part of it.
    """
    content = {
        "host": f"http://{overlay.HOST}:{overlay.PORT}",
        "pipeline": overlay.PIPELINE,
        "size": place.size,
        "data": str(place.data),
        "socket": str(socket),
        "scrape": None if scrape is None else str(scrape),
        "namespace": overlay.NAMESPACE,
        "member": str(member),
    }
    place.current.parent.mkdir(parents=True, exist_ok=True)
    new = place.current.with_suffix(".new")
    new.write_text(json.dumps(content, indent=2) + "\n")
    new.replace(place.current)
    try:
        yield
    finally:
        place.current.unlink(missing_ok=True)
