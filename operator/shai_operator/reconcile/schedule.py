# SPDX-License-Identifier: BSD-2-Clause
"""Times of a cron schedule in a time zone, with the rules of Debian's cron for changes of the clock.

A schedule with a star in its minutes or hours fires whenever the local clock shows a matching time: it does not fire at
skipped times, and fires twice at repeated times. Any other schedule names fixed times of day: for a skipped time it
fires as soon as the clock has changed, for a repeated time only the first time. cronsim computes the calendar. It
treats changes by half an hour (Lord Howe) and at midnight (Santiago) differently, so it is only used with local times.

Moments are in UTC. The time zone database is the system's.
"""

from __future__ import annotations

import zoneinfo
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from shai_operator.reconcile.counts import count

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALID, NEVER = "InvalidSchedule", "NeverFires"
"""Reasons of a `ScheduleError`, as the condition Ready gives them."""

MOST_COUNTED = 100
"""The limit for counting missed times; the CronJob controller has the same limit."""

_LONGEST_EXPRESSION = 256
_LONGEST_SHIFT = timedelta(hours=3)
"""The largest change of clocks for daylight saving; Debian's cron treats a larger one as a correction."""
_MINUTE = timedelta(minutes=1)

_FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31 or L (the last)"),
    ("month", "1-12 or JAN-DEC"),
    ("day of week", "0-7 (0 and 7 are Sunday) or SUN-SAT"),
)
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class ScheduleError(Exception):
    """A schedule that cannot be used; the text names the field and the remedy."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Missed:
    """Scheduled times since a moment: the latest one and their number.

    The number is at most `MOST_COUNTED` + 1.
    """

    latest: datetime
    count: int

    @property
    def too_many(self) -> bool:
        """Whether the number is beyond the limit."""
        return self.count > MOST_COUNTED


@dataclass(frozen=True)
class Schedule:
    """A cron expression of five fields that can fire, in a time zone. Made by `parse`."""

    expression: str
    zone: zoneinfo.ZoneInfo

    @property
    def fixed(self) -> bool:
        """Whether the schedule names times of day, rather than intervals of minutes or hours."""
        minute, hour = self.expression.split()[:2]
        return not minute.startswith("*") and not hour.startswith("*")

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times later than ``moment``, in order, for the next 50 years at least."""
        last = moment
        for time in self._times(moment):
            if time > last:
                last = time
                yield time

    def next(self, moment: datetime) -> datetime:
        """Return the first time later than ``moment``; ScheduleError when there is none."""
        for time in self.after(moment):
            return time
        raise ScheduleError(
            NEVER,
            f"spec.schedule {self.expression!r} does not fire in the next 50 years: no day has both the day of month "
            "and the day of week that it names; set one of the two to *",
        )

    def missed(self, since: datetime, now: datetime) -> Missed | None:
        """Return the times later than ``since`` and not later than ``now``; None when there is none."""
        count, latest = 0, None
        for time in self.after(since):
            if time > now:
                break
            count, latest = count + 1, time
            if count > MOST_COUNTED:
                latest = self._latest(now)
                break
        return Missed(latest, count) if latest else None

    def _latest(self, now: datetime) -> datetime:
        """Return the last time not later than ``now``; there has to be one."""
        window = timedelta(hours=1)
        while True:
            found = None
            for time in self.after(now - window):
                if time > now:
                    break
                found = time
            if found:
                return found
            window *= 2

    def _times(self, moment: datetime) -> Iterator[datetime]:
        """Yield times from about ``moment`` on; the first may be earlier, and a time may occur twice."""
        local = moment.astimezone(self.zone)
        ahead = (moment + _LONGEST_SHIFT).astimezone(self.zone)
        repeated = max(_offset(local) - _offset(ahead), timedelta())
        second_passes: deque[datetime] = deque()
        for wall in CronSim(self.expression, local.replace(tzinfo=None, fold=0) - repeated):
            passes = self._passes(wall)
            while passes and second_passes and second_passes[0] <= passes[0]:
                yield second_passes.popleft()
            yield from passes[:1]
            second_passes.extend(passes[1:])
        yield from second_passes

    def _passes(self, wall: datetime) -> list[datetime]:
        """Return the moments at which to fire for a local time: none, one or two."""
        first, second = (wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if not self._exists(wall):
            return [self._end_of_gap(wall)] if self.fixed else []
        return [first] if self.fixed or first == second else [first, second]

    def _exists(self, wall: datetime) -> bool:
        local = wall.replace(tzinfo=self.zone)
        return local.astimezone(UTC).astimezone(self.zone).replace(tzinfo=None, fold=0) == wall

    def _end_of_gap(self, wall: datetime) -> datetime:
        while not self._exists(wall):
            wall += _MINUTE
        return wall.replace(tzinfo=self.zone).astimezone(UTC)


@lru_cache(maxsize=4096)
def parse(expression: str, time_zone: str) -> Schedule:
    """Parse a schedule; ScheduleError says what is wrong with it."""
    parts = expression.split()
    if expression.strip().lower() in _SHORTHANDS:
        raise ScheduleError(
            INVALID, f"spec.schedule {expression!r}: write it out as {_SHORTHANDS[expression.strip().lower()]!r}"
        )
    if len(expression) > _LONGEST_EXPRESSION or len(parts) != len(_FIELDS):
        raise ScheduleError(
            INVALID,
            f"spec.schedule {expression[:_LONGEST_EXPRESSION]!r} has {count(len(parts), 'field')}; write five: "
            "minute, hour, day of month, month, day of week, such as '0 3 * * *' for 3:00 every day",
        )
    for number, (part, (field, values)) in enumerate(zip(parts, _FIELDS, strict=True)):
        alone = ["*"] * len(_FIELDS)
        alone[number] = part
        if not _understood(alone):
            raise ScheduleError(
                INVALID,
                f"spec.schedule {expression!r}: the {field} {part!r} is not one; write {values}, "
                "* for any, a list (1,4), a range (1-4) or a step (*/15)",
            )
    if not _understood(parts):
        raise ScheduleError(
            NEVER, f"spec.schedule {expression!r} never fires: no month {parts[3]} has a day {parts[2]}; change either"
        )
    return Schedule(" ".join(parts), _zone(time_zone))


def _understood(parts: list[str]) -> bool:
    try:
        CronSim(" ".join(parts), datetime(2000, 1, 1))  # noqa: DTZ001 - a local time, whatever the zone
    except CronSimError:
        return False
    return True


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            INVALID,
            f"spec.timeZone {name!r} is not in the time zone database; write a name such as Europe/Berlin or Etc/UTC",
        ) from error


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()
