// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"reflect"
	"strconv"
	"strings"

	"shai.dev/monitor/internal/bug"
)

// rule holds a field's rule tag.
type rule struct {
	required bool
	filled   bool     // a list that is not empty if it is given
	name     bool     // a DNS label
	enum     []string // the values allowed
	fallback string   // the value of an absent field, as a manifest would write it
	min      int      // value of a number
	max      int      // length of a text or list, value of a number; 0 is no limit
	item     int      // length of each text in a list
}

// field is one field of a kind, with its name in manifests.
type field struct {
	name  string
	index int
	rule  rule
}

// fieldsOf lists the fields of a struct type. A malformed tag is a bug in this package,
// which its tests find.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields = append(fields, field{name: name, index: i, rule: parseRule(t.Field(i).Tag.Get("rule"))})
	}
	return fields
}

func parseRule(tag string) rule {
	r := rule{min: 1}
	if tag == "" {
		return r
	}
	for _, part := range strings.Split(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "required":
			r.required = true
		case "filled":
			r.filled = true
		case "name":
			r.name = true
		case "enum":
			r.enum = strings.Split(value, "|")
		case "default":
			r.fallback = value
		case "min":
			r.min = limitOf(tag, value)
		case "max":
			r.max = limitOf(tag, value)
		case "item":
			r.item = limitOf(tag, value)
		default:
			bug.Found("rule %q: unknown word %q", tag, key)
		}
	}
	return r
}

func limitOf(tag, value string) int {
	limit, err := strconv.Atoi(value)
	if err != nil {
		bug.Found("rule %q: %v", tag, err)
	}
	return limit
}

// IsLabel reports whether s is a DNS label: lower-case letters, digits and inner hyphens,
// at most 63 bytes. It must also fit the wire's 96-byte names.
func IsLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
