# SPDX-License-Identifier: BSD-2-Clause
"""The demo's Prometheus: Debian's program with Shai's rules, on loopback, as an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demo import overlay, probes
from loadgen.errors import LoadgenError
from loadgen.stacks import processes

if TYPE_CHECKING:
    from pathlib import Path

    from demo.workspace import Workspace
    from loadgen.stacks.supervisor import Supervisor

PROGRAM = "prometheus"
ADDRESS = overlay.HOST, 9090
"""Where it answers in the demo."""
_USERS = ("prometheus", "nobody")
"""The user of Debian's package, and one that every machine has."""
_START_SECONDS = 60.0
SCRAPE_SECONDS = 5.0
"""As prometheus.yml says."""


@dataclass(frozen=True)
class Server:
    """A Prometheus that runs."""

    url: str
    started: float
    """In seconds since 1970."""


class PrometheusError(LoadgenError):
    """Prometheus cannot run; the text has the remedy."""


def is_installed() -> bool:
    """Whether this machine has Prometheus."""
    return shutil.which(PROGRAM) is not None


def prepare(place: Workspace) -> Path:
    """Make the directory from which Prometheus is configured, without what an earlier run left there; return it.

    Prometheus' group may read what is written there, such as the key by which members know it; other users may not.
    """
    shutil.rmtree(place.scrape, ignore_errors=True)
    rules = place.scrape / "rules"
    for path in (place.scrape, rules, place.scrape / "targets", place.scrape / "tls"):
        path.mkdir()
        os.chown(path, -1, _user().pw_gid)
        path.chmod(0o2750)  # what is made inside has the same group
    sources = place.root / "dashboards" / "rules"
    for name, folder in (("prometheus.yml", place.scrape), ("recording.yml", rules), ("alerts.yml", rules)):
        shutil.copyfile(sources / name, folder / name)
    return place.scrape


def start(place: Workspace, supervisor: Supervisor, address: tuple[str, int] = ADDRESS) -> Server:
    """Start Prometheus; return it when it answers.

    It runs on the load generator's core. The measurement counts the time of the measured processes only, and none of
    them is on that core.
    """
    user, log = _user(), place.logs / "prometheus.log"
    reached = "{}:{}".format(*address)
    data = _data(place, user)
    core = ",".join(map(str, sorted(processes.split_cores()[1])))
    command: list[str | Path] = [
        "taskset", "--cpu-list", core, PROGRAM,
        f"--config.file={place.scrape / 'prometheus.yml'}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address={reached}",
        "--enable-feature=exemplar-storage",
    ]  # fmt: skip
    process = supervisor.start(
        "Prometheus", command, log, user=user.pw_uid, group=user.pw_gid, extra_groups=(), cwd=data
    )
    supervisor.wait_until(lambda: probes.is_ready(address, "/-/ready"), process, "Prometheus", log, _START_SECONDS)
    return Server(f"http://{reached}", time.time())


def _data(place: Workspace, user: pwd.struct_passwd) -> Path:
    data = place.output / "prometheus"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    os.chown(data, user.pw_uid, user.pw_gid)
    return data


def _user() -> pwd.struct_passwd:
    """Return the user that it runs as; PrometheusError when this machine has none of them."""
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PrometheusError(f"this machine has neither a user {' nor a user '.join(_USERS)}: install Debian's package")
