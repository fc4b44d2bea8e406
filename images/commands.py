# SPDX-License-Identifier: BSD-2-Clause
"""The commands: each reads its options, has the work done, and prints the result."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from images import checksums, descriptions, fetching, machine, seeds
from images.errors import ImageError
from images.rendering import render

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator


def add_output(parser: ArgumentParser) -> None:
    """Add the option for the form of what a command prints."""
    parser.add_argument("--output", choices=["text", "json"], default="text", help="what is printed (default: text)")


def add_pool(parser: ArgumentParser) -> None:
    """Add the options that say which virtual machine's files are rendered."""
    parser.add_argument("--pool", type=Path, required=True, help="manifest of a JailPool with provider bhyve")
    parser.add_argument("--machine", type=int, default=0, metavar="K", help="the virtual machine, from 0 (default: 0)")
    parser.add_argument(
        "--authorized-keys", type=Path, required=True, metavar="FILE", help="public keys that may log in as root"
    )
    parser.add_argument(
        "--host-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the machine's SSH host key: Ed25519, no passphrase",
    )


def printed(options: Namespace, lines: list[str], value: object) -> int:
    """Print lines, or a value as JSON; return the exit status of success."""
    if options.output == "json":
        json.dump(value, sys.stdout, indent=2)
        print()
    else:
        print(*lines, sep="\n")
    return 0


def check(options: Namespace) -> int:
    """Check every description, and say which have no checksum yet."""
    found: dict[str, str] = {}
    for name in descriptions.names():
        try:
            found[name] = "pinned" if descriptions.read(name)["checksum"].get("value") else "no checksum is recorded"
        except ImageError as error:
            found[name] = str(error)
    wrong = [name for name, state in found.items() if state not in {"pinned", "no checksum is recorded"}]
    for name in wrong:
        print(found[name], file=sys.stderr)
    lines = [f"{name}: {state}" for name, state in found.items() if name not in wrong]
    ended = _unsupported(name for name in found if name not in wrong)
    for name, end in ended.items():
        print(
            f"images: warning: image {name}: its support ended on {end}, so it gets no security updates; choose a "
            "newer one",
            file=sys.stderr,
        )
    printed(options, lines, {"images": found, "wrong": wrong, "unsupported": sorted(ended)})
    return 1 if wrong else 0


def _unsupported(names: Iterable[str]) -> dict[str, str]:
    """Return the ends of support that have passed; the day itself is still supported."""
    today = datetime.now(UTC).date().isoformat()
    ends = {name: descriptions.read(name).get("supportedUntil", today) for name in names}
    return {name: end for name, end in ends.items() if end < today}


def show(options: Namespace) -> int:
    """List the descriptions, a line each."""
    rows = [{"name": name, **descriptions.read(name)} for name in descriptions.names()]
    lines = [
        f"{row['name']:<24} {row['filesystem']:<5} {row['firstBoot']:<11} "
        f"{row.get('supportedUntil', '-'):<11} {_short(row['checksum'])}"
        for row in rows
    ]
    heading = f"{'NAME':<24} {'ON':<5} {'FIRST BOOT':<11} {'SUPPORTED':<11} CHECKSUM"
    return printed(options, [heading, *lines], rows)


def _short(checksum: dict[str, str]) -> str:
    return f"{checksum['value'][:12]}…, {checksum['verifiedBy']}" if "value" in checksum else "not recorded"


def rendered(options: Namespace) -> dict[str, str]:
    """Return the files of the virtual machine that the options name; ImageError says what is wrong with them."""
    pool = _manifest(options.pool)
    image = _image(pool)
    key = machine.host_key(text(options.host_key))
    keys = [*machine.authorized_keys(text(options.authorized_keys)), *machine.pool_keys(pool)]
    made = machine.first_boot(pool, options.machine, descriptions.read(image)["firstBoot"], keys, key)
    return render(made)


def write(options: Namespace) -> int:
    """Render a virtual machine's files into a directory, or print them."""
    files = rendered(options)
    if options.into is None:
        return printed(options, [f"# {name}\n{content}" for name, content in files.items()], files)
    try:
        options.into.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            # The host key is in one of them, so nothing is written to a file that others may read, or through a link.
            (options.into / name).unlink(missing_ok=True)
            with open(os.open(options.into / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
                file.write(content)
    except OSError as error:
        raise ImageError(f"{options.into} cannot be written: {error}; choose another directory") from error
    return printed(options, [str(options.into / name) for name in files], [str(options.into / name) for name in files])


def seed(options: Namespace) -> int:
    """Make a virtual machine's seed."""
    seeds.write(rendered(options), options.seed)
    return printed(options, [str(options.seed)], {"seed": str(options.seed), "label": seeds.LABEL})


def record(options: Namespace) -> int:
    """Record the checksum of an image, from a signed file or from somebody who vouches for it."""
    description = descriptions.read(options.name)
    if options.sha512 is not None:
        value, verified_by = options.sha512, f"by hand: {options.vouched_by}"
    else:
        file = description["path"].rsplit("/", 1)[1]
        value, verified_by = _signed(options, description["published"], file)
    today = datetime.now(UTC).date().isoformat()
    path = descriptions.record(options.name, value, today, verified_by)
    lines = [f"{path}: recorded {value[:16]}…, verified {verified_by}"]
    return printed(options, lines, {"name": options.name, "checksum": value, "verifiedBy": verified_by})


def _signed(options: Namespace, published: dict[str, str], file: str) -> tuple[str, str]:
    """Return a file's checksum and who signed it, from the file that the options name or the project publishes."""
    if options.key is None:
        raise ImageError(
            f"image {options.name}: without the public key that signs the checksums nothing can be verified: give "
            "it with --key, or vouch for a checksum yourself with --sha512 and --vouched-by"
        )
    if options.checksum_file is None and published["signature"] != "clear":
        raise ImageError(
            f"image {options.name}: the project does not sign {published['url']} in the file itself; give "
            "--checksum-file and --signature, or vouch for a checksum yourself with --sha512 and --vouched-by"
        )
    content = _bytes(options.checksum_file) if options.checksum_file else fetching.small(published["url"])
    signature = _bytes(options.signature) if options.signature else None
    signed, fingerprint = checksums.verified(content, signature, _bytes(options.key), options.fingerprint)
    return checksums.value_of(signed, file), f"OpenPGP {fingerprint}"


def fetch(options: Namespace) -> int:
    """Bring an image into a cache, unless it is there."""
    description = descriptions.read(options.name)
    pinned = descriptions.pin(options.name, description, options.checksum)
    url = descriptions.url(description, options.mirror)
    with _bar(options.name) as progress:
        place = fetching.fetch(url, pinned, options.into, progress)
    return printed(options, [str(place)], {"name": options.name, "file": str(place), "checksum": pinned})


@contextmanager
def _bar(name: str) -> Iterator[fetching.Progress]:
    """Show a download on the terminal, if there is one."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)


def text(path: Path) -> str:
    """Read a file; ImageError if that fails, or if it is no text."""
    try:
        return _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ImageError(f"{path} is no text: {error}; give another file") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error}; give another file") from error


def _manifest(path: Path) -> dict[str, Any]:
    try:
        documents = [document for document in yaml.safe_load_all(text(path)) if document]
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ImageError(f"{path} is no YAML: {error}; give the manifest of a JailPool") from error
    pools = [document for document in documents if isinstance(document, dict) and document.get("kind") == "JailPool"]
    if len(pools) != 1:
        raise ImageError(f"{path} has {len(pools)} objects of kind JailPool; give a file with one")
    return pools[0]


def _image(pool: dict[str, Any]) -> str:
    spec = pool.get("spec")
    virtual = spec.get("virtualMachine") if isinstance(spec, dict) else None
    name = virtual.get("image") if isinstance(virtual, dict) else None
    if not isinstance(name, str):
        raise ImageError(
            "the pool has no spec.virtualMachine.image; give the manifest of a JailPool with provider bhyve"
        )
    return name
