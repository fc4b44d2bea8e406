# SPDX-License-Identifier: BSD-2-Clause
"""What a pool's virtual machines boot from: descriptions of images, their checksums, and seeds for the first boot."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from images import commands
from images.errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command; the exit status is 0 after success, 1 after a failure, 130 after an interrupt."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except ImageError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m images", description=__doc__, epilog="Exit status: 0 success, 1 failure, 2 wrong usage."
    )
    added = parser.add_subparsers(dest="command", required=True)
    check = added.add_parser("check", help="check every description against the schema")
    commands.add_output(check)
    check.set_defaults(run=commands.check)
    shown = added.add_parser("list", help="list the descriptions")
    commands.add_output(shown)
    shown.set_defaults(run=commands.show)
    render = added.add_parser(
        "render", help="render user-data, meta-data and network-config of a pool's virtual machine"
    )
    commands.add_pool(render)
    commands.add_output(render)
    render.add_argument("--into", type=Path, metavar="DIR", help="directory for the files (default: they are printed)")
    render.set_defaults(run=commands.write)
    seed = added.add_parser(
        "seed", help="make the seed of a pool's virtual machine, an ISO image with the label cidata"
    )
    commands.add_pool(seed)
    commands.add_output(seed)
    seed.add_argument("seed", type=Path, metavar="OUT", help="file for the seed; it holds the host key")
    seed.set_defaults(run=commands.seed)
    _add_record(added.add_parser("record", help="record the checksum of an image, when its signature is verified"))
    fetch = added.add_parser("fetch", help="download an image into a cache, if its checksum is known")
    fetch.add_argument("name", help="name of a description, see list")
    fetch.add_argument("--into", type=Path, required=True, metavar="DIR", help="the cache; a folder for each checksum")
    fetch.add_argument("--mirror", default="", metavar="URL", help="mirror (default: the first of the description)")
    fetch.add_argument("--checksum", default="", metavar="HEX", help="SHA-512 (default: the recorded one)")
    commands.add_output(fetch)
    fetch.set_defaults(run=commands.fetch)
    return parser


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Records the checksum of an image in its description. It is read from the file that the project publishes, or "
        "from --checksum-file, after GnuPG has verified its signature with --key. What is not signed by that key is "
        "refused. Where a project signs nothing, a person has to vouch: --sha512 with --vouched-by."
    )
    parser.add_argument("name", help="name of a description, see list")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the project's public key, as you got and checked it")
    parser.add_argument(
        "--fingerprint", default="", metavar="HEX", help="which key of --key has to sign; needed if there are several"
    )
    parser.add_argument("--checksum-file", type=Path, metavar="FILE", help="signed file (default: it is downloaded)")
    parser.add_argument("--signature", type=Path, metavar="FILE", help="signature of --checksum-file, if not in it")
    parser.add_argument("--sha512", metavar="HEX", help="a checksum that you have verified in another way")
    parser.add_argument("--vouched-by", metavar="NAME", help="who verified --sha512, and how")
    commands.add_output(parser)
    parser.set_defaults(run=_record(parser))


def _record(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        if (options.sha512 is None) != (options.vouched_by is None):
            parser.error("--sha512 and --vouched-by belong together")
        if options.vouched_by is not None and not options.vouched_by.strip():
            parser.error("--vouched-by needs the name of a person")
        if options.sha512 is not None and (options.key or options.checksum_file or options.signature):
            parser.error("--sha512 takes the place of a signed file: leave --key, --checksum-file and --signature out")
        if options.signature is not None and options.checksum_file is None:
            parser.error("--signature belongs to --checksum-file")
        return commands.record(options)

    return run


if __name__ == "__main__":
    sys.exit(main())
