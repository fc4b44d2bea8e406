// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

// factList is policy.Facts over a list.
type factList []policy.Fact

func (l factList) Has(pattern policy.Pattern) bool {
	found := false
	l.Lookup(pattern, func(policy.Fact) bool { found = true; return false })
	return found
}

func (l factList) Lookup(pattern policy.Pattern, yield func(policy.Fact) bool) {
	for _, fact := range l {
		if fact.Conduit == pattern.Conduit && fact.Relation == pattern.Relation &&
			len(fact.Arguments) == len(pattern.Arguments) && !yield(fact) {
			return
		}
	}
}

func prefixFact(prefix, region string) policy.Fact {
	return policy.Fact{Conduit: "regions", Relation: "prefix",
		Arguments: []policy.Value{policy.String(prefix), policy.String(region)}}
}

// The longest prefix wins, in whatever order the facts come.
func TestRegionTableProperty(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) netip.Addr {
		// Few different bits, so that prefixes overlap.
		bits := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 127, 128}), 4, 4).Draw(t, "address")
		if rapid.Bool().Draw(t, "v6") {
			return netip.AddrFrom16([16]byte{0x20, 0x01, 14: bits[0], 15: bits[1]})
		}
		return netip.AddrFrom4([4]byte(bits))
	})
	rapid.Check(t, func(t *rapid.T) {
		var facts factList
		regions := map[netip.Prefix]string{}
		for i := range rapid.IntRange(0, 12).Draw(t, "prefixes") {
			from := address.Draw(t, "from")
			prefix := netip.PrefixFrom(from, rapid.IntRange(0, from.BitLen()).Draw(t, "bits"))
			if _, twice := regions[prefix.Masked()]; twice {
				continue
			}
			regions[prefix.Masked()] = fmt.Sprint("region", i)
			facts = append(facts, prefixFact(prefix.String(), regions[prefix.Masked()]))
		}
		asked := address.Draw(t, "asked")
		want, longest := "", -1
		for prefix, region := range regions {
			if prefix.Contains(asked) && prefix.Bits() > longest {
				want, longest = region, prefix.Bits()
			}
		}
		if got := newRegionTable(facts).lookup(asked); got != want {
			t.Fatalf("%v is in %q, want %q; facts %v", asked, got, want, facts)
		}
	})
}

// Supervisors have the addresses of IPv4 as those of IPv6 that stand for them. They find
// the same region all the same.
func TestRegionsOfSupervisorsAreTheMonitors(t *testing.T) {
	table := newRegionTable(factList{
		prefixFact("::/0", "v6"), prefixFact("10.0.0.0/8", "us"), prefixFact("::ffff:11.0.0.0/104", "mapped"),
		prefixFact("12.0.0.0/8", "one"), prefixFact("12.0.0.0/8", "two"), prefixFact("12.0.0.0/8", "one"),
	})
	for address, want := range map[string]string{
		"10.1.2.3": "us", "11.1.2.3": "mapped", "12.1.2.3": "", "13.1.2.3": "", "2001:db8::1": "v6",
	} {
		asked := netip.MustParseAddr(address)
		if got := table.lookup(asked); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
		told, longest := "", -1
		for _, entry := range table {
			record := regionRecord(entry)
			prefix := netip.PrefixFrom(netip.AddrFrom16(record.Address), int(record.Bits))
			if prefix.Contains(netip.AddrFrom16(asked.As16())) && prefix.Bits() > longest {
				told, longest = record.Region, prefix.Bits()
			}
		}
		if told != want {
			t.Errorf("a supervisor finds %s in %q, want %q", address, told, want)
		}
	}
}

func TestRegionTable(t *testing.T) {
	table := newRegionTable(factList{
		prefixFact("not a prefix", "de"), prefixFact("10.0.0.0", "de"), prefixFact("10.0.0.0/33", "de"),
		prefixFact("10.0.0.0/8", "us"), prefixFact("2001:db8::/32", "fr"),
	})
	for address, want := range map[string]string{
		"10.1.2.3": "us", "11.1.2.3": "", "2001:db8::1": "fr", "::1": "", "127.0.0.1": "",
	} {
		if got := table.lookup(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
	}
	if got := table.lookup(netip.Addr{}); got != "" {
		t.Errorf("no address at all is in %q", got)
	}
}
