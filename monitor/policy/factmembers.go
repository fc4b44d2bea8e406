// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// isSet reports whether the group's tuples have one argument and no offset. Then a value is in
// the group exactly if the group is among those that have the value, of which it has few:
// the question need not look at the group's rows, however many there are.
func (g *factGroup) isSet() bool { return g.key.Arity == 1 && !g.key.Positioned }

// setNumber is one more than the number of a group that is a set, 0 for none.
type setNumber uint64

func (g *factGroup) set() setNumber {
	if g == nil {
		return 0
	}
	return setNumber(g.number) + 1
}

// fewGroups are walked faster than halved.
const fewGroups = 8

// in reports whether a value, of which this is the use, is in a set.
func (u *valueUse) in(set setNumber) bool {
	if u == nil || set == 0 || len(u.groups) == 0 {
		return false
	}
	number := uint32(set - 1) //nolint:gosec // a group's number
	if len(u.groups) <= fewGroups {
		return slices.Contains(u.groups, number)
	}
	_, found := slices.BinarySearch(u.groups, number)
	return found
}
