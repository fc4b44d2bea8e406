// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// isSet reports whether the group's tuples have one argument and no offset. Then a value is in
// the group exactly if the group is among those that have the value, of which it has few:
// the question need not look at the group's rows, however many there are.
func (g *factGroup) isSet() bool { return g.key.arity == 1 && !g.key.positioned }

// in reports whether a value, of which this is the use, is in a set. No use is none.
func (u *valueUse) in(set *factGroup) bool {
	if u == nil {
		return false
	}
	_, found := slices.BinarySearch(u.groups, set.number)
	return found
}
