# SPDX-License-Identifier: BSD-2-Clause
"""A separate machine for a page's commands, as far as Linux namespaces allow it. It needs root.

All its processes end with it. All ports of loopback are free, and there is no other network. The folders outside the
checkout to which pages write are empty. Systemd cannot be reached, because a service that a page installs would outlive
it.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net")
# The first process of a namespace inherits orphans; bash reaps them.
_FIRST_PROCESS = """
set -euo pipefail
ip link set lo up
mkdir -p /var/lib/shai
for folder in /srv /var/lib/shai /run/systemd; do
  if [[ -d $folder ]]; then mount -t tmpfs none "$folder"; fi
done
status=0
"$@" || status=$?
exit "$status"
"""


def run(command: Sequence[str], directory: Path) -> int:
    """Run ``command`` in ``directory``; return its status when all processes that it started have ended, too."""
    words = [*_UNSHARE, "bash", "-c", _FIRST_PROCESS, "bash", *command]
    return subprocess.run(words, cwd=directory, check=False).returncode
