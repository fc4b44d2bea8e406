# SPDX-License-Identifier: BSD-2-Clause
"""What the `shai` program says of itself."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from shai_operator.monitors.errors import MonitorUnreachableError

if TYPE_CHECKING:
    from pathlib import Path


async def version(shai: Path) -> str:
    """Return the version of the program, which is also the operator's; MonitorUnreachableError when it does not say."""
    process = await asyncio.create_subprocess_exec(
        shai, "version", "--output", "json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    try:
        return str(json.loads(said)["version"])
    except (ValueError, KeyError) as error:
        raise MonitorUnreachableError(f"{shai} version: it said {said[:200]!r}; build it (make build)") from error
