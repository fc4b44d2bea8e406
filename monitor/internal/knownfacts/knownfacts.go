// SPDX-License-Identifier: BSD-2-Clause

// Package knownfacts has the facts that the monitor itself reads: the regions of networks, and the
// keys of principals. What is not in their form has no effect there, so it is refused where facts are
// written. Pure.
package knownfacts

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net/netip"

	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// "regions" says prefix("192.0.2.0/24", "de") gives a network its region, and "population" says
// key(Principal, Hex) a principal its public key.
const (
	Regions    = "regions"
	Prefix     = "prefix"
	Population = "population"
	Key        = "key"
)

// Network reads a network. One of IPv6 that stands for one of IPv4 is this one.
func Network(text string) (netip.Prefix, error) {
	const mapping = 96 // bits, before those of IPv4
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%.80q is no network; expected a form such as \"192.0.2.0/24\"", text)
	}
	prefix = prefix.Masked()
	if !prefix.Addr().Is4In6() || prefix.Bits() < mapping {
		return prefix, nil
	}
	return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapping), nil
}

// PublicKey reads the key of a principal.
func PublicKey(text string) (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("public key %.80q is not an Ed25519 key of 64 hexadecimal digits", text)
	}
	return key, nil
}

// IsRegion reports whether a fact gives a network its region.
func IsRegion(fact policy.Fact) bool { return fact.Conduit == Regions && fact.Relation == Prefix }

// IsKey reports whether a fact gives a principal its public key.
func IsKey(fact policy.Fact) bool { return fact.Conduit == Population && fact.Relation == Key }

// Checker checks facts that are written together. The zero Checker has seen none.
type Checker struct {
	regions map[netip.Prefix]string
	keys    map[string]string
}

// Check returns why the monitor could not use a fact: nil if it can, or if the fact is for policies only.
// The same fact again is no mistake: facts are a set.
func (c *Checker) Check(conduit, relation string, tuple policy.Tuple) error {
	var err error
	switch values := tuple.Values(); {
	case !policy.IsName(relation):
		return fmt.Errorf("%.80q is no name of a relation: no policy can ask for it; write small letters, digits, - and _",
			relation)
	case conduit == Regions && relation == Prefix:
		err = c.region(values)
	case conduit == Population && relation == Key:
		err = c.key(values)
	}
	if err != nil {
		return fmt.Errorf("%q says %s: %w", conduit, relation, err)
	}
	return nil
}

func (c *Checker) region(values []policy.Value) error {
	if !areTexts(values) {
		return fmt.Errorf("expected a network and its region, both in quotes, such as (\"192.0.2.0/24\", \"de\")")
	}
	network, err := Network(values[0].Text())
	region := values[1].Text()
	switch other, twice := c.regions[network]; {
	case err != nil:
		return err
	case !wire.IsName(region):
		return fmt.Errorf("%.80q is no name of a region; give it one of 1 to %d bytes", region, wire.NameMax-1)
	case twice && other != region:
		return fmt.Errorf("network %s is in region %q, too, so it would be in none; keep one of them", network, other)
	}
	if c.regions == nil {
		c.regions = map[netip.Prefix]string{}
	}
	c.regions[network] = region
	return nil
}

func (c *Checker) key(values []policy.Value) error {
	if !areTexts(values) {
		return fmt.Errorf("expected a principal and a public key, both in quotes")
	}
	key, err := PublicKey(values[1].Text())
	name := values[0].Text()
	switch other, twice := c.keys[name]; {
	case err != nil:
		return err
	case twice && other != string(key):
		return fmt.Errorf("%q has another key, too, so it would have none; keep one of them", name)
	}
	if c.keys == nil {
		c.keys = map[string]string{}
	}
	c.keys[name] = string(key)
	return nil
}

func areTexts(values []policy.Value) bool {
	return len(values) == 2 && values[0].Kind() == policy.StringValue && values[1].Kind() == policy.StringValue
}
