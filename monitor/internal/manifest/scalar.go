// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Scalar is one value of a fact's tuple: a string or an integer. The policy
// language tells "1" from 1, so the two stay apart here as well.
type Scalar struct {
	Text     string // the value, or the decimal digits of Number
	Number   int64
	IsNumber bool
}

// TextScalar is the string s.
func TextScalar(s string) Scalar { return Scalar{Text: s} }

// NumberScalar is the integer n.
func NumberScalar(n int64) Scalar {
	return Scalar{Text: strconv.FormatInt(n, 10), Number: n, IsNumber: true}
}

// String is the value as the policy language writes it.
func (s Scalar) String() string {
	if s.IsNumber {
		return s.Text
	}
	return strconv.Quote(s.Text)
}

// MarshalJSON writes a JSON string or a JSON integer.
func (s Scalar) MarshalJSON() ([]byte, error) {
	if s.IsNumber {
		return strconv.AppendInt(nil, s.Number, 10), nil
	}
	return json.Marshal(s.Text)
}

// UnmarshalJSON accepts a JSON string or a 64-bit JSON integer, and nothing else.
func (s *Scalar) UnmarshalJSON(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '"' {
		*s = Scalar{}
		return json.Unmarshal(text, &s.Text)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("fact value %s: expected a string or a 64-bit integer", text)
	}
	*s = NumberScalar(n)
	return nil
}
