# SPDX-License-Identifier: BSD-2-Clause
"""Fetching an image, with real playbooks and a real server: cut, wrong, missing and whole."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.providers.process import COLLECTION
from tests.providers.standins import world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.standins import World

DISK = bytes(range(256)) * 1000
PACKED = lzma.compress(DISK)
DIGEST = hashlib.sha512(PACKED).hexdigest()


class _Mirror(BaseHTTPRequestHandler):
    """Has one image whole, and one of which only a part arrives."""

    def do_GET(self) -> None:
        if not self.path.endswith(("/whole.xz", "/cut.xz")):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(PACKED)))
        self.end_headers()
        self.wfile.write(PACKED if self.path.endswith("/whole.xz") else PACKED[: len(PACKED) // 2])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def mirror() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Mirror) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def made(tmp_path: Path) -> World:
    created = world(tmp_path)
    (tmp_path / "collections/ansible_collections/shai").mkdir(parents=True)
    (tmp_path / "collections/ansible_collections/shai/pools").symlink_to(COLLECTION)
    script = created.script("bhyve_host", "storage.sh")
    created.run(script, "prepare", DIRECTORY=str(tmp_path / "store"))
    return created


def fetch(made: World, mirror: str, file: str = "whole.xz", digest: str = DIGEST) -> tuple[int, str]:
    """Run the role's task file; return how many tasks have changed something, -1 for a failure, and the output."""
    play: dict[str, Any] = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {
            "ansible_python_interpreter": sys.executable,
            "bhyve_host_storage": {"directory": str(made.place / "store")},
            "bhyve_host_pool": "web",
            "bhyve_host_image": {
                "mirrors": [mirror],
                "path": file,
                "compression": "xz",
                "checksum": {"algorithm": "sha512", "value": digest},
            },
        },
        "tasks": [{"include_role": {"name": "shai.pools.bhyve_host", "tasks_from": "image.yml"}}],
    }
    (made.place / "play.yml").write_text(json.dumps([play]))
    storage = ["sh", str(made.place / "usr/local/libexec/shai/storage.sh")]
    done = subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            "--inventory=localhost,",
            "--extra-vars",
            json.dumps({"bhyve_host_storage_command": storage}),
            made.place / "play.yml",
        ],
        env={
            **os.environ,
            **made.environment(),
            "ANSIBLE_COLLECTIONS_PATH": str(made.place / "collections"),
            "ANSIBLE_HOME": str(made.place / "ansible"),
            "NO_COLOR": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    changed = re.search(r"changed=(\d+)", done.stdout)
    return (int(changed[1]) if changed and done.returncode == 0 else -1), done.stdout + done.stderr


def images(made: World) -> list[str]:
    return [file.name for file in (made.place / "store/images").iterdir()]


def test_an_image_is_fetched_once(made: World, mirror: str) -> None:
    changed, said = fetch(made, mirror)
    assert changed > 0, said
    assert (made.place / "store/images" / DIGEST / "disk.img").read_bytes() == DISK
    assert images(made) == [DIGEST]
    assert fetch(made, "http://127.0.0.1:1")[0] == 0, "an image that is there is not asked for"


@pytest.mark.parametrize(
    ("file", "digest", "says"),
    [
        pytest.param("cut.xz", DIGEST, "ImageFetchFailed: image cut.xz", id="cut off"),
        pytest.param("whole.xz", "0" * 128, "ChecksumMismatch: image whole.xz", id="another file"),
        pytest.param("other.xz", DIGEST, "ImageFetchFailed: image other.xz", id="not there"),
        pytest.param("whole.xz", "", "ImageFetchFailed: no checksum", id="no checksum known"),
    ],
)
def test_what_is_not_the_image_does_not_stay(made: World, mirror: str, file: str, digest: str, says: str) -> None:
    changed, said = fetch(made, mirror, file, digest)
    assert changed == -1
    assert says in said, said
    assert images(made) == []
