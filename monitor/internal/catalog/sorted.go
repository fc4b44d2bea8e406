// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"maps"
	"slices"
)

// sortedKeys lists a map's keys in order: no result here may depend on the order of a
// map.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
