// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// SameButForNames reports whether two policies are the same clauses in the same order, apart from the names of
// their variables, their parameters and themselves: then they mean the same with any arguments. The clauses of
// policies that they include are compared, not these policies' names.
func SameButForNames(first, second *Template) bool {
	return slices.Equal(first.types, second.types) && bytes.Equal(first.appendTo(nil), second.appendTo(nil))
}

// appendTo writes the template as it was written, with variables and parameters by number.
func (t *Template) appendTo(out []byte) []byte {
	for _, rule := range [][]lowered{t.read, t.update} {
		out = binary.AppendUvarint(out, uint64(len(rule)))
		for i := range rule {
			out = rule[i].appendTo(out)
		}
	}
	return appendObligations(out, t.obligations)
}

// appendTo numbers variables as they come: the compiler numbers those with a name before those without.
func (c *lowered) appendTo(out []byte) []byte {
	numbers := map[int64]int64{}
	asTheyCome := func(variable int64) int64 {
		if _, known := numbers[variable]; !known {
			numbers[variable] = int64(len(numbers))
		}
		return numbers[variable]
	}
	out = binary.AppendUvarint(out, uint64(len(c.body)))
	for i := range c.body {
		out = c.body[i].appendTo(out, asTheyCome)
	}
	return out
}

func appendObligations(out []byte, obligations []loweredObligation) []byte {
	out = binary.AppendUvarint(out, uint64(len(obligations)))
	for _, o := range obligations {
		out = append(out, byte(o.rule))
		out = binary.AppendUvarint(out, uint64(len(o.exits)))
		for i := range o.exits {
			out = appendObligations(o.exits[i].condition.appendTo(out), o.exits[i].behind)
		}
	}
	return out
}
