# SPDX-License-Identifier: BSD-2-Clause
"""Images and machines on a host's storage: nothing half-made has a final name, and nothing of others is deleted."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING

import pytest

from tests.providers.standins import world

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.providers.standins import World

    Run = Callable[..., subprocess.CompletedProcess[str]]

DIGEST, OTHER = "a" * 128, "b" * 128
MARK = json.dumps({"name": "web-vm-0", "image": DIGEST})


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(tmp_path)


@pytest.fixture
def files(made: World) -> Run:
    """Return the script on a directory that is prepared."""
    script = made.script("bhyve_host", "storage.sh")

    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return made.run(script, *words, text=text, DIRECTORY=str(made.place / "store"))

    assert len(run("prepare").stdout.splitlines()) == 3
    assert run("prepare").stdout == ""
    return run


def packed(made: World, content: bytes = b"disk" * 1000) -> str:
    file = made.place / "image.xz"
    file.write_bytes(lzma.compress(content))
    return str(file)


def names(made: World, part: str) -> list[str]:
    return sorted(file.name for file in (made.place / "store" / part).iterdir())


def test_a_machine_in_a_directory(made: World, files: Run) -> None:
    assert files("has_image", DIGEST).returncode == 1
    files("add_image", DIGEST, packed(made), "xz")
    assert files("has_image", DIGEST).returncode == 0
    assert files("add_machine", "web-vm-0", DIGEST, text=MARK).stdout == "made web-vm-0\n"
    place = made.place / "store/vms/web-vm-0"
    assert (place / "disk.img").read_bytes() == b"disk" * 1000
    assert json.loads((place / "vm.json").read_text())["image"] == DIGEST
    assert place.stat().st_mode & 0o777 == 0o700
    assert files("tidy").stdout == ""
    assert files("remove_machine", "web-vm-0").stdout == "removed web-vm-0\n"
    assert files("remove_machine", "web-vm-0").stdout == ""
    assert files("tidy").stdout == f"deleted image {DIGEST}\n"
    assert names(made, "vms") == names(made, "images") == []


@pytest.mark.parametrize(
    ("xz", "says"),
    [
        ("xz: (stdout): Write error: No space left on device", "StorageFull: "),
        ("xz: (stdout): Write error: Disc quota exceeded", "StorageFull: "),
        ("xz: image.xz: Unexpected end of input", "ImageFetchFailed: "),
        ("xz: /data/space/image.xz: File format not recognized", "ImageFetchFailed: "),
    ],
)
def test_an_image_that_cannot_be_unpacked_does_not_stay(made: World, files: Run, xz: str, says: str) -> None:
    made.program("xz", f'#!/bin/sh\necho half\necho "{xz}" >&2\nexit 1\n')
    done = files("add_image", DIGEST, packed(made), "xz")
    assert done.returncode == 1
    assert done.stderr.startswith(says)
    assert xz in done.stderr
    assert names(made, "images") == []


def test_a_machine_on_a_full_storage_does_not_stay(made: World, files: Run) -> None:
    files("add_image", DIGEST, packed(made), "xz")
    made.program("cp", '#!/bin/sh\necho half >"$2"\necho "cp: No space left on device" >&2\nexit 1\n')
    done = files("add_machine", "web-vm-0", DIGEST, text=MARK)
    assert done.returncode == 1
    assert "StorageFull: " in done.stderr
    assert "No space left" in done.stderr
    assert names(made, "vms") == []


@pytest.mark.parametrize(
    ("program", "call"),
    [("mkdir", ("add_image", DIGEST)), ("mkdir", ("add_machine", "web-vm-0")), ("cat", ("add_machine", "web-vm-0"))],
)
def test_a_full_storage_is_named_by_each_step(made: World, files: Run, program: str, call: tuple[str, str]) -> None:
    if call[0] == "add_machine":
        files("add_image", DIGEST, packed(made), "xz")
    made.program(program, f'#!/bin/sh\necho "{program}: Disc quota exceeded" >&2\nexit 1\n')
    done = files(*call, *((packed(made), "xz") if call[0] == "add_image" else (DIGEST,)), text=MARK)
    assert done.returncode == 1
    assert done.stderr.startswith("StorageFull: "), done.stderr
    assert names(made, "vms") == []


def test_another_fault_is_not_told_as_a_full_storage(made: World, files: Run) -> None:
    files("add_image", DIGEST, packed(made), "xz")
    made.program("cp", '#!/bin/sh\necho "cp: Input/output error" >&2\nexit 1\n')
    done = files("add_machine", "web-vm-0", DIGEST, text=MARK)
    assert done.returncode == 1
    assert "the disk of web-vm-0 cannot be copied" in done.stderr
    assert "StorageFull" not in done.stderr


def test_what_an_interrupted_run_left_is_made_anew_and_tidied(made: World, files: Run) -> None:
    for left in (f"images/{DIGEST}.new", "vms/web-vm-0.new"):
        (made.place / "store" / left).mkdir()
        (made.place / "store" / left / "disk.img").write_text("half")
    files("add_image", DIGEST, packed(made), "xz")
    files("add_machine", "web-vm-0", DIGEST, text=MARK)
    assert (made.place / "store/vms/web-vm-0/disk.img").stat().st_size == 4000
    (made.place / f"store/images/{OTHER}.new").mkdir()
    (made.place / "store/vms/web-vm-1.new").mkdir()
    assert len(files("tidy").stdout.splitlines()) == 2
    assert names(made, "vms") == ["web-vm-0"]
    assert names(made, "images") == [DIGEST]


def test_directories_of_others_stay(made: World, files: Run) -> None:
    files("add_image", DIGEST, packed(made), "xz")
    foreign = made.place / "store/vms/web-vm-0"
    foreign.mkdir()
    (foreign / "precious").touch()
    (made.place / "store/images/of-somebody").mkdir()
    (made.place / "store/vms/of-somebody.new").mkdir()
    assert "is not the pool's" in files("add_machine", "web-vm-0", DIGEST, text=MARK).stderr
    assert "is not the pool's" in files("remove_machine", "web-vm-0").stderr
    files("tidy")
    assert (foreign / "precious").exists()
    assert "of-somebody" in names(made, "images")
    assert "of-somebody.new" in names(made, "vms")


ZFS = """#!/usr/bin/env python3
# Datasets are directories below the world's; properties and snapshots are files beside them.
import json, os, pathlib, shutil, sys
world = pathlib.Path(os.environ["WORLD"])
with open(world / "log", "a") as log: print("zfs", *sys.argv[1:], file=log)
known = world / "datasets.json"
sets = json.loads(known.read_text())
command, words = sys.argv[1], sys.argv[2:]
if os.environ.get("FULL") == command: sys.exit(f"cannot {command} '{words[-1]}': out of space")
last = words[-1]
def place(name): return world / "mounted" / name
if command == "list": sys.exit(0 if last in sets else f"cannot open '{last}': dataset does not exist")
if command == "get":
    if last not in sets: sys.exit(1)
    if "mountpoint" in words: print(place(last))
    elif "clones" in words: print(",".join(name for name, of in sets.items() if of.get("origin") == last) or "-")
    else: print(sets[last].get("dev.shai:made", "-"))
if command in ("create", "clone"):
    properties = dict(words[i + 1].split("=") for i, word in enumerate(words) if word == "-o")
    sets[last] = properties | ({"origin": words[-2]} if command == "clone" else {})
    place(last).mkdir(parents=True)
    if command == "clone": shutil.copy(place(words[-2].split("@")[0]) / "disk.img", place(last))
if command == "snapshot": sets[last] = {}
if command == "destroy":
    busy = world / "busy"
    if busy.exists() and (left := int(busy.read_text())):
        busy.write_text(str(left - 1))
        sys.exit(f"cannot unmount '{place(last)}': pool or dataset is busy")
    if any(of.get("origin", "").startswith(last + "@") for of in sets.values()):
        sys.exit(f"cannot destroy '{last}': filesystem has dependent clones")
    for name in [name for name in sets if name == last or name.startswith((last + "@", last + "/"))]: del sets[name]
    shutil.rmtree(place(last))
known.write_text(json.dumps(sets))
"""


@pytest.fixture
def zfs(made: World) -> Run:
    """Return the script on a dataset."""
    made.program("zfs", ZFS)
    (made.place / "datasets.json").write_text('{"tank/shai": {}}')
    (made.place / "mounted/tank/shai").mkdir(parents=True)
    script = made.script("bhyve_host", "storage.sh")

    def run(
        *words: str, text: str = "", dataset: str = "tank/shai", full: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return made.run(script, *words, text=text, DATASET=dataset, FULL=full)

    return run


def datasets(made: World) -> list[str]:
    return sorted(json.loads((made.place / "datasets.json").read_text()))


def test_a_machine_in_a_dataset_is_a_clone(made: World, zfs: Run) -> None:
    zfs("prepare")
    zfs("add_image", DIGEST, packed(made), "xz")
    assert zfs("has_image", DIGEST).returncode == 0
    zfs("add_machine", "web-vm-0", DIGEST, text=MARK)
    image = f"tank/shai/images/{DIGEST}@image"
    assert f"clone -o dev.shai:made=shai {image} tank/shai/vms/web-vm-0" in made.calls("zfs")
    assert (made.place / "mounted/tank/shai/vms/web-vm-0/disk.img").stat().st_size == 4000
    assert zfs("tidy").stdout == "", "an image with dependent clones stays"
    assert zfs("remove_machine", "web-vm-0").stdout == "removed web-vm-0\n"
    assert zfs("tidy").stdout == f"deleted image {DIGEST}\n"
    assert datasets(made) == ["tank/shai", "tank/shai/images", "tank/shai/vms"]


def test_a_full_pool_is_named_by_each_step(made: World, zfs: Run) -> None:
    refused = [zfs("prepare", full="create")]
    zfs("prepare")
    refused += [zfs("add_image", DIGEST, packed(made), "xz", full=command) for command in ("create", "snapshot")]
    zfs("add_image", DIGEST, packed(made), "xz")
    refused.append(zfs("add_machine", "web-vm-0", DIGEST, text=MARK, full="clone"))
    for done in refused:
        assert done.returncode == 1
        assert done.stderr.startswith("StorageFull: "), done.stderr
        assert "out of space" in done.stderr
    assert zfs("add_machine", "web-vm-0", DIGEST, text=MARK).stdout == "made web-vm-0\n"


def test_a_half_made_dataset_is_made_anew(made: World, zfs: Run) -> None:
    zfs("prepare")
    zfs("add_image", DIGEST, "/nonexistent", "xz")
    assert datasets(made) == ["tank/shai", "tank/shai/images", "tank/shai/vms"]
    zfs("add_image", DIGEST, packed(made), "xz")
    zfs("add_machine", "web-vm-0", DIGEST, text=MARK)
    (made.place / "mounted/tank/shai/vms/web-vm-0/vm.json").unlink()
    assert zfs("add_machine", "web-vm-0", DIGEST, text=MARK).stdout == "made web-vm-0\n"


def test_a_busy_dataset_is_waited_for_and_then_named(made: World, zfs: Run) -> None:
    zfs("prepare")
    zfs("add_image", DIGEST, packed(made), "xz")
    zfs("add_machine", "web-vm-0", DIGEST, text=MARK)
    (made.place / "busy").write_text("1000")
    done = zfs("remove_machine", "web-vm-0")
    assert done.returncode == 1
    assert "dataset tank/shai/vms/web-vm-0 is busy: end the processes" in done.stderr
    (made.place / "busy").write_text("3")
    assert zfs("remove_machine", "web-vm-0").returncode == 0


def test_datasets_of_others_stay(made: World, zfs: Run) -> None:
    zfs("prepare")
    zfs("add_image", DIGEST, packed(made), "xz")
    known = made.place / "datasets.json"
    known.write_text(json.dumps(json.loads(known.read_text()) | {"tank/shai/vms/web-vm-0": {}}))
    assert "is not the pool's" in zfs("add_machine", "web-vm-0", DIGEST, text=MARK).stderr
    assert "is not the pool's" in zfs("remove_machine", "web-vm-0").stderr
    assert "tank/shai/vms/web-vm-0" in datasets(made)


def test_a_missing_dataset_is_named(zfs: Run) -> None:
    assert "make it (zfs create tank/other)" in zfs("prepare", dataset="tank/other").stderr
