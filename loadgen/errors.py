# SPDX-License-Identifier: BSD-2-Clause
"""Failures with an explanation for users."""

from __future__ import annotations


class LoadgenError(Exception):
    """A failure whose text says to a user what failed, why, and what to do.

    Programs print only the text, as they do for an OSError. Any other exception is a bug and shows its trace.
    """

    exit_status = 1
    """With which a command ends."""

    def __init__(self, text: str, *, public: str = "") -> None:
        super().__init__(text)
        self.public = public
        """What may stand where people read who may not see users' data, such as titles and names; empty: nothing."""


class PublicError(LoadgenError):
    """A failure whose text has nothing from users' data or from logs."""

    def __init__(self, text: str) -> None:
        super().__init__(text, public=text)
