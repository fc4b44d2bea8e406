# SPDX-License-Identifier: BSD-2-Clause
"""What may go wrong on a user's machine."""

from __future__ import annotations


class LoadgenError(Exception):
    """Something failed for a reason that the text explains to a user: the thing, the cause and the remedy.

    Programs print the text alone, as they do with an OSError; any other exception is a bug and shows its trace.
    """
