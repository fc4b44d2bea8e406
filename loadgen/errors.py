# SPDX-License-Identifier: BSD-2-Clause
"""Failures with an explanation for users."""

from __future__ import annotations


class LoadgenError(Exception):
    """A failure whose text says to a user what failed, why, and what to do.

    Programs print only the text, as they do for an OSError. Any other exception is a bug and shows its trace.
    """

    exit_status = 1
    """With which a command ends."""
