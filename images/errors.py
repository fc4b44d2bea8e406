# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong with an image."""

from __future__ import annotations


class ImageError(Exception):
    """Something is wrong with an image, a pool or a file; the message names it, the cause and the remedy."""


class UnpinnedError(ImageError):
    """No checksum is known for an image, so it must not be used."""


class SignatureError(ImageError):
    """A file with checksums is not signed by the key that was given."""


class ChecksumMismatchError(ImageError):
    """A file is not the one that was pinned."""
