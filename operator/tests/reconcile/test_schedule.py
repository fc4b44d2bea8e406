# SPDX-License-Identifier: BSD-2-Clause
"""Schedules at changes of the clock, compared with a table and with a simulation of every minute."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shai_operator.reconcile import schedule
from shai_operator.reconcile.schedule import ScheduleError

MINUTE = timedelta(minutes=1)
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}Z")


@pytest.mark.parametrize(
    ("expression", "zone", "after", "times"),
    [
        # Clocks change from 2:00 to 3:00: skipped fixed times run immediately afterwards.
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("0,30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:00"]),
        ("30 2,3 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-29T01:30"]),
        # But intervals do not: they ran a moment ago.
        ("*/30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-30T00:00", "2026-03-30T00:30"]),
        ("*/30 * * * *", BERLIN, "2026-03-29T00:29", ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]),
        # Clocks change from 3:00 to 2:00: fixed times run once, intervals twice.
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", BERLIN, "2026-10-25T00:30", ["2026-10-26T01:30"]),
        ("*/30 2 * * *", BERLIN, "2026-10-24T23:00", ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00"]),
        ("30 * * * *", BERLIN, "2026-10-25T00:29", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"]),
        ("30 2 * * *", NEW_YORK, "2026-03-07T12:00", ["2026-03-08T07:00", "2026-03-09T06:30"]),
        ("30 1 * * *", NEW_YORK, "2026-10-31T12:00", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        # At a time in the second pass, the runs of the first one are over.
        ("45 1 * * *", NEW_YORK, "2026-11-01T06:30", ["2026-11-02T06:45"]),
        ("45 * * * *", NEW_YORK, "2026-11-01T05:50", ["2026-11-01T06:45", "2026-11-01T07:45"]),
        # Half an hour: 2:00 becomes 2:30, and 2:00 becomes 1:30.
        ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00", ["2026-10-03T15:30", "2026-10-04T15:15"]),
        ("*/10 2 * * *", LORD_HOWE, "2026-10-03T12:00", ["2026-10-03T15:30", "2026-10-03T15:40", "2026-10-03T15:50"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04T12:00", ["2026-04-04T14:45", "2026-04-05T15:15"]),
        ("45 * * * *", LORD_HOWE, "2026-04-04T14:00", ["2026-04-04T14:45", "2026-04-04T15:15", "2026-04-04T16:15"]),
        ("*/10 2 * * *", LORD_HOWE, "2026-04-04T12:00", ["2026-04-04T15:30", "2026-04-04T15:40", "2026-04-04T15:50"]),
        # A day without midnight.
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", ["2026-09-06T04:00", "2026-09-07T03:00"]),
        ("*/30 0 * * *", "America/Santiago", "2026-09-05T12:00", ["2026-09-07T03:00", "2026-09-07T03:30"]),
        # Rare days.
        ("0 12 29 2 *", "Etc/UTC", "2026-01-01T00:00", ["2028-02-29T12:00", "2032-02-29T12:00"]),
        ("0 12 L * *", "Etc/UTC", "2026-01-01T00:00", ["2026-01-31T12:00", "2026-02-28T12:00"]),
        ("0 12 13 * 5", "Etc/UTC", "2026-02-01T00:00", ["2026-02-06T12:00", "2026-02-13T12:00", "2026-02-20T12:00"]),
    ],
)
def test_times(expression: str, zone: str, after: str, times: list[str]) -> None:
    found = itertools.islice(schedule.parse(expression, zone).after(utc(after)), len(times))
    assert [f"{time:%Y-%m-%dT%H:%M}" for time in found] == times


ZONES = [
    BERLIN, NEW_YORK, LORD_HOWE, "America/Santiago", "Pacific/Chatham", "Africa/Casablanca", "Asia/Kolkata", "Etc/UTC",
]  # fmt: skip
TRANSITIONS = {
    zone: [
        moment
        for hour in range(365 * 24)
        for moment in [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour)]
        if moment.astimezone(ZoneInfo(zone)).utcoffset()
        != (moment + timedelta(hours=1)).astimezone(ZoneInfo(zone)).utcoffset()
    ]
    or [datetime(2026, 3, 1, tzinfo=UTC)]
    for zone in ZONES
}


def values(text: str, top: int) -> set[int]:
    """Read a field without the library under test: *, */n or a list."""
    if text.startswith("*"):
        return set(range(0, top, int(text.partition("/")[2] or 1)))
    return set(map(int, text.split(",")))


def every_minute(expression: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Fire as cron does: check each minute, and the minutes that the clock has skipped before it."""
    minute, hour = expression.split()[:2]
    minutes, hours = values(minute, 60), values(hour, 24)
    fixed = not minute.startswith("*") and not hour.startswith("*")
    fired: list[datetime] = []
    seen: set[datetime] = set()

    def matches(wall: datetime) -> bool:
        return wall.minute in minutes and wall.hour in hours

    moment = start - timedelta(days=2)
    before = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    while moment < end:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        shown = [wall]
        if fixed:
            skipped = int((wall - before) / MINUTE) - 1
            shown += [before + MINUTE * number for number in range(1, skipped + 1)]
            shown = [moment for moment in shown if moment not in seen]
        seen.update(shown)
        before = wall
        if moment > start and any(map(matches, shown)):
            fired.append(moment)
    return fired


def field(top: int) -> st.SearchStrategy[str]:
    listed = st.lists(st.integers(0, top - 1), min_size=1, max_size=3, unique=True)
    return st.one_of(
        st.just("*"),
        st.sampled_from([f"*/{step}" for step in (2, 7, 10, 15)]),
        listed.map(lambda chosen: ",".join(map(str, chosen))),
    )


@settings(max_examples=120)
@given(
    minute=field(60),
    hour=field(24),
    zone=st.sampled_from(ZONES),
    which=st.integers(0, 3),
    offset=st.integers(-400, 200),
)
@example(minute="*/10", hour="2", zone=LORD_HOWE, which=0, offset=-400)
@example(minute="*/5", hour="3", zone="Pacific/Chatham", which=1, offset=-400)
def test_agrees_with_a_cron_that_looks_at_the_clock_every_minute(
    minute: str, hour: str, zone: str, which: int, offset: int
) -> None:
    transitions = TRANSITIONS[zone]
    start = transitions[which % len(transitions)] + MINUTE * offset
    end = start + timedelta(hours=30)
    expression = f"{minute} {hour} * * *"
    found = itertools.takewhile(lambda time: time <= end, schedule.parse(expression, zone).after(start))
    assert list(found) == every_minute(expression, ZoneInfo(zone), start, end)


@pytest.mark.parametrize(
    ("expression", "zone", "reason", "says"),
    [
        ("0 0 30 2 *", "Etc/UTC", schedule.NEVER, "no month 2 has a day 30"),
        ("0 0 31 4,6 *", "Etc/UTC", schedule.NEVER, "no month 4,6 has a day 31"),
        ("61 * * * *", "Etc/UTC", schedule.INVALID, "the minute '61' is not one; write 0-59"),
        ("* 24 * * *", "Etc/UTC", schedule.INVALID, "the hour '24'"),
        ("* * 0 * *", "Etc/UTC", schedule.INVALID, "the day of month '0'"),
        ("* * * foo *", "Etc/UTC", schedule.INVALID, "the month 'foo' is not one; write 1-12 or JAN-DEC"),
        ("* * * * 8", "Etc/UTC", schedule.INVALID, "the day of week '8'"),
        ("*/0 * * * *", "Etc/UTC", schedule.INVALID, "the minute '*/0'"),
        ("5-1 * * * *", "Etc/UTC", schedule.INVALID, "the minute '5-1'"),
        ("* * * *", "Etc/UTC", schedule.INVALID, "has 4 fields; write five"),
        ("0 * * * * *", "Etc/UTC", schedule.INVALID, "has 6 fields; write five"),
        ("", "Etc/UTC", schedule.INVALID, "has 0 fields"),
        ("1" * 5000 + " * * * *", "Etc/UTC", schedule.INVALID, "write five"),
        ("@daily", "Etc/UTC", schedule.INVALID, "write it out as '0 0 * * *'"),
        ("* * * * *", "Europe/Bielefeld", schedule.INVALID, "spec.timeZone 'Europe/Bielefeld'"),
        ("* * * * *", "../../etc/passwd", schedule.INVALID, "spec.timeZone"),
        ("* * * * *", "Europe", schedule.INVALID, "spec.timeZone 'Europe'"),
        ("* * * * *", "", schedule.INVALID, "write a name such as Europe/Berlin"),
    ],
)
def test_what_cannot_be_kept_names_the_field_and_the_remedy(expression: str, zone: str, reason: str, says: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule.parse(expression, zone)
    assert caught.value.reason == reason
    assert says in str(caught.value)


@pytest.mark.parametrize("expression", ["0 0 */8 * 1#5", "0 0 */30 2 0#5"])
def test_a_day_that_never_comes_is_found_out_when_it_is_asked_for(expression: str) -> None:
    with pytest.raises(ScheduleError, match="does not fire in the next 50 years") as caught:
        schedule.parse(expression, BERLIN).next(utc("2026-01-01T00:00"))
    assert caught.value.reason == schedule.NEVER


@given(st.text(alphabet="0123456789*/,-#L @JANMON²", max_size=40))
def test_any_text_is_a_schedule_or_an_explained_error(text: str) -> None:
    found = ""
    try:
        parsed = schedule.parse(text, BERLIN)
    except ScheduleError as error:
        found = str(error)
    assert "spec.schedule" in found if found else parsed.zone.key == BERLIN


@pytest.mark.parametrize(
    ("expression", "since", "now", "latest", "count"),
    [
        ("0 * * * *", "2026-06-01T10:00", "2026-06-01T10:59", None, 0),
        ("0 * * * *", "2026-06-01T10:00", "2026-06-01T11:00", "2026-06-01T11:00", 1),
        ("0 * * * *", "2026-06-01T10:00", "2026-06-01T14:30", "2026-06-01T14:00", 4),
        ("0 * * * *", "2026-06-01T10:00", "2026-06-05T14:00", "2026-06-05T14:00", 100),
        ("0 * * * *", "2026-06-01T10:00", "2026-06-05T15:00", "2026-06-05T15:00", 101),
        ("* * * * *", "2016-06-01T10:00", "2026-06-01T10:00", "2026-06-01T10:00", 101),
        ("0 0 1 * *", "1990-06-01T10:00", "2026-06-15T10:00", "2026-05-31T22:00", 101),
    ],
)
def test_missed_times(expression: str, since: str, now: str, latest: str | None, count: int) -> None:
    found = schedule.parse(expression, BERLIN).missed(utc(since), utc(now))
    if latest is None:
        assert found is None
        return
    assert found == schedule.Missed(utc(latest), count)
    assert found.too_many == (count > 100)
