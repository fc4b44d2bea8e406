// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ValueKind is the type of a [Value].
type ValueKind uint8

// The kinds of value that facts and policies hold. The unexported kinds occur
// only inside the prover and in compiled terms.
const (
	Wildcard ValueKind = iota // the zero Value: matches anything in a Pattern, a fact never holds it
	StringValue
	IntegerValue
	TimeValue

	kindVariable  // a clause variable, by number
	kindParameter // a template's parameter, by number
	kindThis      // the name of the policy's conduit
	kindNow       // the clock
	kindFrozen    // an arbitrary but fixed value of a hypothesis' variable
	kindPolicy    // a policy from hasPol, by number in the prover
	kindStored    // a value of an index, by number in it, before an evaluator needs more of it
)

// typeNames are the possible types of parameters, in the words of vType.
var typeNames = [...]string{StringValue: "string", IntegerValue: "integer", TimeValue: "time"}

// parseArgument reads a parameter's value in the form of its type.
func parseArgument(kind ValueKind, text string) (Value, error) {
	switch kind {
	case IntegerValue:
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Value{}, fmt.Errorf("%q is not a 64-bit integer", text)
		}
		return Integer(number), nil
	case TimeValue:
		instant, err := parseTime(text)
		if err != nil {
			return Value{}, err
		}
		return Time(instant), nil
	}
	if len(text) > MaxString {
		return Value{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrStringTooLong, len(text), MaxString)
	}
	return String(text), nil
}

// Value is a string, a 64-bit integer or an instant. Values are comparable with
// == and usable as map keys.
type Value struct {
	text   string
	number int64
	kind   ValueKind
}

// String makes a string value.
func String(text string) Value { return Value{kind: StringValue, text: text} }

// Integer makes an integer value.
func Integer(number int64) Value { return Value{kind: IntegerValue, number: number} }

// The instants that fit a time value: nanoseconds since 1970 in 64 bits.
var (
	earliest = time.Unix(0, math.MinInt64)
	latest   = time.Unix(0, math.MaxInt64)
)

// Time makes a time value with nanosecond resolution. Instants outside 1678 to
// 2262 are moved to the nearer end.
func Time(instant time.Time) Value {
	switch {
	case instant.Before(earliest):
		instant = earliest
	case instant.After(latest):
		instant = latest
	}
	return Value{kind: TimeValue, number: instant.UnixNano()}
}

// Kind returns the value's type.
func (v Value) Kind() ValueKind { return v.kind }

// Text returns a string value's text, "" for other kinds.
func (v Value) Text() string {
	if v.kind != StringValue {
		return ""
	}
	return v.text
}

// Number returns an integer value, 0 for other kinds.
func (v Value) Number() int64 {
	if v.kind != IntegerValue {
		return 0
	}
	return v.number
}

// Instant returns a time value in UTC, the zero time for other kinds.
func (v Value) Instant() time.Time {
	if v.kind != TimeValue {
		return time.Time{}
	}
	return time.Unix(0, v.number).UTC()
}

// concrete reports whether the value is a string, an integer or a time, so that the state
// can be asked about it.
func (v Value) concrete() bool { return v.kind >= StringValue && v.kind <= TimeValue }

// Compare orders values: by kind, then by number, then by text.
func (v Value) Compare(other Value) int {
	if order := cmp.Compare(v.kind, other.kind); order != 0 {
		return order
	}
	if order := cmp.Compare(v.number, other.number); order != 0 {
		return order
	}
	return strings.Compare(v.text, other.text)
}

// String returns the value in the form of policies.
func (v Value) String() string {
	switch v.kind {
	case Wildcard:
		return "_"
	case StringValue:
		return strconv.Quote(v.text)
	case IntegerValue:
		return strconv.FormatInt(v.number, 10)
	case TimeValue:
		return v.Instant().Format(time.RFC3339Nano)
	case kindThis:
		return "this"
	case kindNow:
		return "now"
	case kindVariable:
		return "V" + strconv.FormatInt(v.number, 10)
	case kindFrozen:
		return "?" + strconv.FormatInt(v.number, 10)
	default:
		return "<" + v.text + ">"
	}
}

// Append appends what String returns.
func (v Value) Append(out []byte) []byte {
	if v.kind == StringValue {
		return strconv.AppendQuote(out, v.text)
	}
	return append(out, v.String()...)
}

// MarshalJSON writes strings and integers as themselves, times as
// {"time":"RFC 3339"} and a wildcard as null.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case Wildcard:
		return []byte("null"), nil
	case StringValue:
		return json.Marshal(v.text)
	case IntegerValue:
		return strconv.AppendInt(nil, v.number, 10), nil
	case TimeValue:
		return json.Marshal(struct {
			Time string `json:"time"`
		}{v.Instant().Format(time.RFC3339Nano)})
	default:
		return nil, fmt.Errorf("value %s exists only inside the prover and cannot be written", v)
	}
}

// parseTime refuses what Time would move.
func parseTime(text string) (time.Time, error) {
	instant, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || instant.Before(earliest) || instant.After(latest) {
		return time.Time{}, fmt.Errorf("%q is not a time as in RFC 3339 between 1678 and 2262, such as 2027-01-31T00:00:00Z", text)
	}
	return instant, nil
}

// timeIn reads an object that has a time, once, and nothing else.
func timeIn(text []byte) (time.Time, error) {
	var tokens [4]json.Token // of {"time":"…"}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for i := range tokens {
		tokens[i], _ = decoder.Token() // nil behind the end
	}
	value, isText := tokens[2].(string)
	if tokens[1] != "time" || !isText || tokens[3] != json.Delim('}') {
		return time.Time{}, errors.New("an object must be {\"time\":\"<RFC 3339>\"}")
	}
	return parseTime(value)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(text []byte) error {
	trimmed := strings.TrimSpace(string(text))
	switch {
	case trimmed == "null":
		*v = Value{}
		return nil
	case strings.HasPrefix(trimmed, `"`):
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("read value: %w", err)
		}
		*v = String(s)
		return nil
	case strings.HasPrefix(trimmed, "{"):
		instant, err := timeIn(text)
		if err != nil {
			return fmt.Errorf("read value %.60q: %w", trimmed, err)
		}
		*v = Time(instant)
		return nil
	}
	number, err := strconv.ParseInt(trimmed, 10, 64)
	if err != nil {
		return fmt.Errorf("read value %.60q: want a string, a 64-bit integer, {\"time\":…} or null", trimmed)
	}
	*v = Integer(number)
	return nil
}
