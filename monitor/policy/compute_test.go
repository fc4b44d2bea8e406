// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"testing"
	"time"
)

// With the result and one operand known, add and sub find the other, of times and seconds, too.
func TestComputationsFindTheOtherOperand(t *testing.T) {
	before, after, minute := Time(noon), Time(noon.Add(time.Minute)), Integer(60)
	for _, test := range []struct {
		op            operation
		x, y, z, want Value
	}{
		{opAdd, after, Value{}, minute, before},
		{opAdd, after, before, Value{}, minute},
		{opSub, before, Value{}, minute, after},
		{opSub, before, after, Value{}, minute},
		{opSub, minute, Value{}, before, after},
		{opSub, minute, after, Value{}, before},
	} {
		values, ok := compute(test.op, test.x, test.y, test.z)
		found := values[1]
		if test.z.kind == Wildcard {
			found = values[2]
		}
		if !ok || found != test.want {
			t.Errorf("%s(%s, %s, %s): found %s, %v; want %s", signatures[test.op].name, test.x, test.y, test.z, found, ok,
				test.want)
		}
	}
}
