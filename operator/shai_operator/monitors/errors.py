# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong when a monitor is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shai_operator.reconcile.texts import cleaned

if TYPE_CHECKING:
    from collections.abc import Sequence

_MALFORMED, _UNAVAILABLE = 502, 503


class MonitorError(Exception):
    """A monitor refused a request; ``str`` is a sentence with cause and remedy.

    ``status`` is the HTTP status, ``errors`` are the places in manifests, one text each. All texts are cleaned, because
    a monitor, or who answers in its place, can write anything there.
    """

    def __init__(self, text: str, status: int, errors: Sequence[str] = ()) -> None:
        super().__init__(cleaned(text))
        self.status = status
        self.errors = tuple(cleaned(error) for error in errors)

    @property
    def unavailable(self) -> bool:
        """Whether it gives no answer that counts: the text says where it is, or what is wrong with its host."""
        return self.status in {_MALFORMED, _UNAVAILABLE}


class MonitorAnswerError(MonitorError):
    """What answers does not answer as a monitor does: the answer is too long, or has another form."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _MALFORMED)


class MonitorUnreachableError(MonitorError):
    """The monitor does not answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _UNAVAILABLE)


class MonitorLateError(MonitorUnreachableError):
    """The monitor, or the way to it, was too slow: it may serve nevertheless."""
