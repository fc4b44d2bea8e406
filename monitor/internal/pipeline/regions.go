// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"cmp"
	"net/netip"
	"slices"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// regionTable maps addresses to regions, by the facts "regions" says prefix("192.0.2.0/24", "de"). The longest
// prefix wins.
type regionTable []regionEntry

type regionEntry struct {
	prefix netip.Prefix
	region string
}

// anyIPv4 is the network of all addresses of IPv4.
var anyIPv4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)

// newRegionTable reads the facts; a prefix that does not parse matches nobody. A network
// with two regions, or with one that is no name, is in none. It says so for all networks
// of IPv4 in which there is no other, since supervisors know addresses of IPv4 as those of
// IPv6 that stand for them.
func newRegionTable(facts policy.Facts) regionTable {
	regions := map[netip.Prefix]string{}
	facts.Lookup(policy.Pattern{
		Conduit: knownfacts.Regions, Relation: knownfacts.Prefix, Arguments: []policy.Value{{}, {}},
	}, func(fact policy.Fact) bool {
		prefix, err := knownfacts.Network(fact.Arguments[0].Text())
		if err != nil {
			return true
		}
		region := fact.Arguments[1].Text()
		if other, twice := regions[prefix]; twice && other != region || !wire.IsName(region) {
			region = ""
		}
		regions[prefix] = region
		return true
	})
	if _, named := regions[anyIPv4]; !named {
		regions[anyIPv4] = ""
	}
	var table regionTable
	for prefix, region := range regions {
		table = append(table, regionEntry{prefix: prefix, region: region})
	}
	slices.SortFunc(table, func(a, b regionEntry) int {
		return cmp.Or(cmp.Compare(b.prefix.Bits(), a.prefix.Bits()), a.prefix.Addr().Compare(b.prefix.Addr()))
	})
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
