# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.thresholds import LABELS, QUANTITIES, Kind, Row, Threshold, ThresholdError, parse

UNITS = {
    Kind.RATIO: ["%"],
    Kind.TIME: ["us", "µs", "ms", "s"],
    Kind.COUNT: [""],
    Kind.RATE: ["", "/s"],
}


HOSTILE = ["\n", "\x1b[2K", "\u202e", "\u2066", "\x00", "é", "\u0665", "🙂", "</script>", "'", "{", "\u200b"]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("overhead>5%", 0.05),
        ("failures>0", 0),
        ("p99>50ms", 0.05),
        ("p50 >= 1.5 s", 1.5),
        ("p90<250us", 0.00025),
        ("p90<250µs", 0.00025),
        ("queries_per_second<1000", 1000),
        ("queries_per_second<1000/s", 1000),
        ('overhead{mode=dynamic, session_length="32"}>5%', 0.05),
        ('p99{phase="first third"}>50ms', 0.05),
    ],
)
def test_thresholds_are_read(text: str, limit: float) -> None:
    assert parse(text).limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "at character 1: expected a quantity; found the end"),
        ("overheads>5%", "at character 1: expected one of overhead, "),
        ("overhead 5%", "at character 10: expected a comparison: >, >=, < or <=; found '5%'"),
        ("overhead>", "at character 10: expected a number; found the end"),
        ("overhead>x%", "at character 10: expected a number; found 'x%'"),
        ("overhead>-5%", "at character 10: expected a number; found '-5%'"),
        ("overhead>5", "at character 11: overhead is a ratio: expected '%'; found the end"),
        ("p99>50", "at character 7: p99 is a time: expected 'us' or 'µs' or 'ms' or 's'; found the end"),
        ("p99>50 min", "at character 8: p99 is a time"),
        ("failures>1%", "at character 11: failures is a number: expected no unit; found '%'"),
        ("p99>1e3ms", "at character 6: p99 is a time"),
        ("p99>50ms and failures>0", "at character 10: expected nothing more; found 'and failures>0'"),
        ("p99{}>5ms", "at character 5: expected a label"),
        ("p99{colour=red}>5ms", "at character 5: expected one of"),
        ("p99{mode=a,mode=b}>5ms", "at character 12: expected one of"),
        ("p99{mode}>5ms", "at character 9: expected “=”"),
        ("p99{mode=}>5ms", "at character 10: expected a value"),
        ("p99{mode=shai>5ms", "at character 14: expected “}” or “,”"),
        ("p99\n>5ms", "at character 4: expected a comparison"),
        *((f'p99{{phase="a{one}b"}}>5ms', 'at character 13: expected “"”, or a letter') for one in HOSTILE),
        *((f"p99{{phase=a{one}}}>5ms", "at character 12: expected “}” or “,”") for one in HOSTILE),
        *(
            (f"p99>{digits}ms", "at character 5: expected a number")
            for digits in ("\u0665\u0660", "\uff15\uff10", "\u096b\u0966")
        ),
        ("p99>5\u0660ms", "at character 6: p99 is a time"),
        ('p99{phase="', 'at character 12: expected “"”, or a letter'),
        ("p99>" + "9" * 500 + "ms", "longer than the 200 characters"),
    ],
)
def test_an_error_names_the_place(text: str, says: str) -> None:
    with pytest.raises(ThresholdError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@st.composite
def written(draw: st.DrawFn) -> Threshold:
    quantity = draw(st.sampled_from(sorted(QUANTITIES)))
    value = st.from_regex(r"[A-Za-z0-9_. -]{0,20}", fullmatch=True)
    labels = draw(st.dictionaries(st.sampled_from(sorted(LABELS)), value))
    return Threshold(
        quantity,
        tuple(sorted(labels.items())),
        draw(st.sampled_from([">", ">=", "<", "<="])),
        draw(st.from_regex(r"[0-9]{1,12}(\.[0-9]{1,12})?", fullmatch=True)),
        draw(st.sampled_from(UNITS[QUANTITIES[quantity].kind])),
    )


@given(written())
def test_what_is_written_is_read_again(threshold: Threshold) -> None:
    assert parse(str(threshold)) == threshold


@given(st.text(max_size=250))
def test_any_text_is_a_threshold_or_an_error(text: str) -> None:
    try:
        threshold = parse(text)
    except ThresholdError as error:
        assert "expected" in str(error) or "longer" in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert parse(str(threshold)) == threshold
        assert re.fullmatch("[ -~µ]*", str(threshold))


@given(st.floats(0, 1e6), st.sampled_from([">", ">=", "<", "<="]), st.integers(0, 10**6))
def test_it_compares_as_arithmetic_does(value: float, comparison: str, number: int) -> None:
    judged = parse(f"queries_per_second{comparison}{number}").judge([Row({}, {"queries_per_second": value})])
    expected = {">": value > number, ">=": value >= number, "<": value < number, "<=": value <= number}
    assert judged.exceeded == expected[comparison]


WHOLE = Row({}, {"p99": 0.04, "failures": 0})
SPIKE = Row({"phase": "spike"}, {"p99": 0.4, "failures": 0})
SHAI = Row({"mode": "shai", "session_length": "1"}, {"overhead": 0.8})
LONG = Row({"mode": "shai", "session_length": "32"}, {"overhead": 0.03})
DYNAMIC = Row({"mode": "dynamic", "session_length": "32"}, {"overhead": 1.0})


@pytest.mark.parametrize(
    ("text", "rows", "judged", "says"),
    [
        ("p99>50ms", [WHOLE, SPIKE], "kept", "40 ms"),  # without a phase it is about the whole run
        ("p99{phase=spike}>50ms", [WHOLE, SPIKE], "exceeded", "400 ms (phase spike)"),
        ("overhead>5%", [SHAI, LONG, DYNAMIC], "exceeded", "80 % (mode shai, session_length 1)"),
        ("overhead{session_length=32}>5%", [SHAI, LONG, DYNAMIC], "kept", "3 %"),
        ("overhead{mode=dynamic}>5%", [SHAI, LONG, DYNAMIC], "exceeded", "100 % (mode dynamic, session_length 32)"),
        ("failures>0", [WHOLE], "kept", "0"),
        # What was not measured is no success.
        ("overhead>5%", [WHOLE], "exceeded", "nothing was measured"),
        ("p99>50ms", [], "exceeded", "nothing was measured"),
        ("p99>50ms", [Row({}, {"p99": float("nan")})], "exceeded", "nothing was measured"),
        ("p99{phase=missing}>50ms", [WHOLE, SPIKE], "exceeded", "nothing was measured"),
    ],
)
def test_judging(text: str, rows: list[Row], judged: str, says: str) -> None:
    judgement = parse(text).judge(rows)
    assert judgement.exceeded == (judged == "exceeded")
    assert says in judgement.message
