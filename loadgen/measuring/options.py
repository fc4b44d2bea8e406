# SPDX-License-Identifier: BSD-2-Clause
"""The options of commands that measure installations of their own: where, and with which load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.measuring.place import IMAGE, MANIFESTS, Place

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_ROOT = Path(__file__).resolve().parents[2]


def add_place(parser: ArgumentParser) -> None:
    """Add the options that `place_of` reads."""
    parser.add_argument("--output", type=Path, required=True, help="directory for what is written")
    parser.add_argument("--image", type=Path, default=_ROOT / IMAGE, help="the programs that are measured")
    parser.add_argument("--manifests", type=Path, default=_ROOT / MANIFESTS, help="Sys-E's manifests")


def place_of(options: Namespace) -> Place:
    """Return where to measure."""
    return Place(options.image.resolve(), options.manifests.resolve(), options.output.resolve())


def add_load(parser: ArgumentParser, *, rounds: int, slice_seconds: float, warm_up_seconds: float, seeded: str) -> None:
    """Add the options of the load, with their defaults; ``seeded`` is what the seed is for."""
    add = parser.add_argument
    add("--rounds", type=positive, default=rounds, help=f"how often each slice is run ({rounds})")
    add("--slice-seconds", type=float, default=slice_seconds, help=f"the length of a slice ({slice_seconds:g})")
    add(
        "--warm-up-seconds", type=float, default=warm_up_seconds,
        help=f"load on each installation before ({warm_up_seconds:g})",
    )  # fmt: skip
    add("--concurrent-users", type=positive, default=24, help="users at the same time (24)")
    add("--seed", type=int, default=1, help=f"of {seeded}")


def natural(text: str) -> int:
    """Read a number that is not negative."""
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def positive(text: str) -> int:
    """Read a number that is at least 1."""
    value = natural(text)
    if value == 0:
        raise ValueError(text)
    return value
