// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
)

// Tuple is a list of values packed into one comparable value, so that a structure with a
// Tuple can be compared with == and used as a map key. A wildcard in it means any value.
type Tuple struct{ packed string }

// NewTuple packs values.
func NewTuple(values ...Value) Tuple {
	size := 0
	for _, value := range values {
		size += 2 + len(value.text)
		if value.kind != StringValue {
			size += 8
		} else if len(value.text) >= 1<<7 {
			size += binary.MaxVarintLen32
		}
	}
	return Tuple{string(appendTuple(make([]byte, 0, size), values))}
}

// appendTuple packs values.
func appendTuple(packed []byte, values []Value) []byte {
	for _, value := range values {
		packed = append(packed, byte(value.kind))
		if value.kind == StringValue {
			packed = binary.AppendUvarint(packed, uint64(len(value.text)))
			packed = append(packed, value.text...)
		} else if value.kind != Wildcard {
			packed = binary.BigEndian.AppendUint64(packed, uint64(value.number)) //nolint:gosec // only its bits count
		}
	}
	return packed
}

// Values unpacks the tuple.
func (t Tuple) Values() []Value { return t.AppendValues(nil) }

// AppendValues appends the tuple's values to a list.
func (t Tuple) AppendValues(values []Value) []Value {
	for rest := t.packed; rest != ""; {
		value := Value{kind: ValueKind(rest[0])}
		rest = rest[1:]
		switch value.kind {
		case Wildcard:
		case StringValue:
			length, used := uvarint(rest)
			value.text, rest = rest[used:used+length], rest[used+length:]
		default:
			for i := range 8 {
				value.number = value.number<<8 | int64(rest[i])
			}
			rest = rest[8:]
		}
		values = append(values, value)
	}
	return values
}

func uvarint(text string) (value, used int) {
	for shift := 0; ; shift += 7 {
		octet := text[used]
		used++
		value |= int(octet&0x7f) << shift
		if octet < 0x80 {
			return value, used
		}
	}
}

// String returns the tuple in the form of policies: ("alice", 17).
func (t Tuple) String() string {
	values := t.Values()
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = value.String()
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// MarshalJSON writes an array of values.
func (t Tuple) MarshalJSON() ([]byte, error) {
	values := t.Values()
	if values == nil {
		values = []Value{}
	}
	return json.Marshal(values)
}

// UnmarshalJSON reads an array of values.
func (t *Tuple) UnmarshalJSON(text []byte) error {
	var values []Value
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("read tuple: %w", err)
	}
	if values == nil {
		return fmt.Errorf("read tuple: want an array of values, got %s", text)
	}
	*t = NewTuple(values...)
	return nil
}
