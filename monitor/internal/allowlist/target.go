// SPDX-License-Identifier: BSD-2-Clause

package allowlist

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
)

// Target is an allowed URL. [List.Origin] makes it.
type Target struct {
	URL  *url.URL
	host string // canonical
}

const localhost = "localhost"

// Permit returns an error unless the monitor may connect to an address that the host was
// resolved to. A name does not lead to the machine itself or to its own network, whatever
// its name server says: who lists such an address has to write it, or localhost.
func (t Target) Permit(address netip.Addr) error {
	plain := address.WithZone("").Unmap()
	literal, err := netip.ParseAddr(t.host)
	switch {
	case err == nil && plain == literal:
		return nil
	case t.host == localhost && plain.IsLoopback():
		return nil
	case err == nil || isSpecial(plain):
		return refused(t.URL.Redacted(), fmt.Sprintf("its host is %s, which has to be listed itself", plain))
	}
	return nil
}

var (
	// metadataServices are addresses at which clouds give machines their credentials, as far
	// as they are not link-local (Alibaba, Azure, AWS, Google).
	metadataServices = []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}
	specialRanges = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),   // this network (RFC 1122): systems take 0.0.0.0 for the machine itself
		netip.MustParsePrefix("240.0.0.0/4"), // reserved, and broadcast
	}
	// embedding are ranges of IPv6 addresses that contain an IPv4 address, by the place of its
	// first byte: IPv4-compatible (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
	embedding = map[netip.Prefix]int{netip.MustParsePrefix("::/96"): 12, netip.MustParsePrefix("64:ff9b::/96"): 12,
		netip.MustParsePrefix("2002::/16"): 2}
)

// isSpecial reports whether an address, which is not an IPv4 address in an IPv6 form, is of the
// machine itself, of its link, of many machines, or of a service for this machine alone.
func isSpecial(address netip.Addr) bool {
	if address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified() ||
		slices.Contains(metadataServices, address) ||
		slices.ContainsFunc(specialRanges, func(r netip.Prefix) bool { return r.Contains(address) }) {
		return true
	}
	for prefix, at := range embedding {
		if prefix.Contains(address) {
			bytes := address.As16()
			return isSpecial(netip.AddrFrom4([4]byte(bytes[at : at+4])))
		}
	}
	return false
}
