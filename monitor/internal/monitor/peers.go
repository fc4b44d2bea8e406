// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"net/netip"
	"slices"

	"shai.dev/monitor/policy"
)

// The facts from which the monitor derives a peer's region:
// "regions" says prefix("192.0.2.0/24", "de"). The longest prefix wins.
const (
	regionsConduit = "regions"
	prefixRelation = "prefix"
)

// regionTable maps addresses to regions.
type regionTable []regionEntry

type regionEntry struct {
	prefix netip.Prefix
	region string
}

// newRegionTable reads the facts; a prefix that does not parse matches nobody.
func newRegionTable(facts policy.Facts) regionTable {
	var table regionTable
	facts.Lookup(policy.Pattern{
		Conduit: regionsConduit, Relation: prefixRelation, Arguments: []policy.Value{{}, {}},
	}, func(fact policy.Fact) bool {
		prefix, err := netip.ParsePrefix(fact.Arguments[0].Text())
		if err == nil {
			table = append(table, regionEntry{prefix: prefix.Masked(), region: fact.Arguments[1].Text()})
		}
		return true
	})
	slices.SortStableFunc(table, func(a, b regionEntry) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
	return table
}

// lookup returns the region of an address, "" if no prefix contains it.
func (t regionTable) lookup(address netip.Addr) string {
	for _, entry := range t {
		if entry.prefix.Contains(address) {
			return entry.region
		}
	}
	return ""
}
