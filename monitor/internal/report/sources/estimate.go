// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Estimate is a figure with its interval of 95 % confidence, which a single round has not:
// Low and High are both there or both nil.
type Estimate struct {
	Value      float64
	Low        *float64
	High       *float64
	BelowNoise bool
	Imprecise  bool

	fault string // what is wrong with it
}

// UnmarshalJSON reads a figure of results.json ("estimate") or of session.json ("value"). What is
// wrong with it is told by wellFormed, which knows where it stands.
func (e *Estimate) UnmarshalJSON(text []byte) error {
	var read struct {
		Estimate   *float64 `json:"estimate"`
		Value      *float64 `json:"value"`
		Low        *float64 `json:"low"`
		High       *float64 `json:"high"`
		BelowNoise bool     `json:"belowNoise"`
		Imprecise  bool     `json:"imprecise"`
	}
	err := json.Unmarshal(text, &read)
	value := cmp.Or(read.Estimate, read.Value)
	*e = Estimate{Low: read.Low, High: read.High, BelowNoise: read.BelowNoise, Imprecise: read.Imprecise}
	switch {
	case err != nil:
		e.fault = "a figure is an object of numbers"
	case value == nil:
		e.fault = "it has no value"
	case (e.Low == nil) != (e.High == nil):
		e.fault = "an interval has both low and high, or neither"
	case e.Low != nil && *e.Low > *e.High:
		e.fault = fmt.Sprintf("low (%g) is above high (%g)", *e.Low, *e.High)
	default:
		e.Value = *value
	}
	return nil
}

// wellFormed returns an error that names the first figure within a value that has another form, by its path of fields.
func wellFormed(path string, value reflect.Value) error {
	if estimate, is := value.Interface().(Estimate); is {
		if estimate.fault != "" {
			return fmt.Errorf("%s: %s; measure again", path, estimate.fault)
		}
		return nil
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			return wellFormed(path, value.Elem())
		}
	case reflect.Struct:
		for field, within := range value.Fields() {
			name := field.Tag.Get("json")
			if name == "-" {
				continue
			}
			if err := wellFormed(join(path, name), within); err != nil {
				return err
			}
		}
	case reflect.Map:
		keys := slices.SortedFunc(slices.Values(value.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		})
		for _, key := range keys {
			if err := wellFormed(join(path, key.String()), value.MapIndex(key)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range value.Len() {
			if err := wellFormed(fmt.Sprintf("%s[%d]", path, i), value.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// join adds a name to a path; a field without one is no part of it.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
