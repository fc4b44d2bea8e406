// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	"shai.dev/monitor/internal/pattern"
)

// claim is something that only one pipeline can have, and in it only one conduit.
type claim struct {
	pipeline *object
	conduit  string
	at       string // field that makes the claim
	text     string // the field's text
}

// describe names the claim in an error about another field.
func (a claim) describe() string {
	return fmt.Sprintf("%q of pipeline %s (%s)", a.text, a.pipeline.name, a.pipeline.position(a.at))
}

// overlaps finds conduits that two pipelines claim. A conduit belongs to one pipeline and
// has one policy, so the later claim is an error.
func (c *checker) overlaps(objects []*object) {
	var paths, addresses []claim
	for _, o := range objects {
		pipeline, ok := o.value.(*Pipeline)
		if !ok || c.objects[o.key()] != o {
			continue
		}
		for i, conduit := range pipeline.Spec.Conduits {
			at := fmt.Sprintf("spec.conduits[%d]", i)
			for j, path := range conduit.Paths {
				if conduit.Kind == KindFile || conduit.Kind == KindTuple {
					paths = append(paths, claim{o, conduit.Name, fmt.Sprintf("%s.paths[%d].path", at, j), path.Path})
				}
			}
			if conduit.Kind == KindConnection && conduit.Listen != "" {
				addresses = append(addresses, claim{o, conduit.Name, at + ".listen", conduit.Listen})
			}
		}
	}
	c.paths(paths)
	c.addresses(addresses)
}

// paths finds patterns of two pipelines that can match one name, and patterns of one
// pipeline that can match one name although neither is more specific.
func (c *checker) paths(claims []claim) {
	var patterns []pattern.Pattern
	var of []claim
	for _, one := range claims {
		parsed, err := pattern.Parse(one.text)
		if err == nil {
			patterns, of = append(patterns, parsed), append(of, one)
		} else if !one.pipeline.broken && !c.failed(one.pipeline, one.at) {
			c.fail(one.pipeline, one.at, "", "%v", err)
		}
	}
	pattern.Meetings(patterns, func(i, j int) bool {
		first, second := of[i], of[j]
		switch {
		case first.pipeline != second.pipeline:
			c.overlap(second, "give each conduit to one pipeline: make one of the paths narrower",
				"pipeline %s claims %q, which can match the same conduits as %s", second.pipeline.name, second.text,
				first.describe())
		case pattern.Ambiguous(patterns[i], patterns[j]):
			c.fail(second.pipeline, second.at, "make one of them narrower",
				"%q and %q (%s) can match the same conduit, and neither is more specific", second.text, first.text,
				first.pipeline.position(first.at))
		}
		return len(c.errors) < maxErrors
	})
}

// failed reports whether an error in a field has been found already.
func (c *checker) failed(o *object, field string) bool {
	for _, known := range c.errors {
		if known.Kind == o.kind && known.Name == o.name &&
			(known.Field == field || strings.HasPrefix(known.Field, field+"[")) {
			return true
		}
	}
	return false
}

func (c *checker) overlap(one claim, hint, format string, arguments ...any) {
	c.errors = append(c.errors, one.pipeline.error(Overlap, one.at, hint, format, arguments...))
}

// addresses finds addresses on which two conduits would listen.
func (c *checker) addresses(claims []claim) {
	values := map[*object]map[string]string{}
	known := map[uint16][]listener{} // by port; 0 for what is no address as long as a machine defines no variables
	for _, one := range claims {
		if values[one.pipeline] == nil {
			values[one.pipeline] = one.pipeline.value.(*Pipeline).Spec.values()
		}
		found := listen(one, values[one.pipeline])
		for _, other := range known[found.port()] {
			if found.meets(other) && len(c.errors) < maxErrors {
				c.overlap(one, "choose another port",
					"conduit %s of pipeline %s listens on %q, as does conduit %s, on %s", one.conduit,
					one.pipeline.name, one.text, other.conduit, other.describe())
			}
		}
		known[found.port()] = append(known[found.port()], found)
	}
}

// listener is a claim of an address, with the pipeline's own variables replaced.
type listener struct {
	claim
	text    string
	address netip.AddrPort // not valid if the machine's variables are missing
}

func listen(of claim, values map[string]string) listener {
	text := of.text
	// What becomes longer than any address is one of nobody.
	if replacedLength(text, values) <= maxAddress {
		text = variable.ReplaceAllStringFunc(text, func(match string) string {
			if value, ok := values[variableOf(match)]; ok {
				return value
			}
			return match
		})
	}
	address, _ := netip.ParseAddrPort(text)
	return listener{of, text, address}
}

func (l listener) port() uint16 { return l.address.Port() }

// meets reports whether only one conduit can listen on the two addresses, whose ports are
// the same. Variables that only the machine defines are equal if they have the same name.
func (l listener) meets(other listener) bool {
	first, second := l.address, other.address
	if !first.IsValid() || !second.IsValid() {
		return l.text == other.text
	}
	return first.Port() != 0 &&
		(first.Addr() == second.Addr() || first.Addr().IsUnspecified() || second.Addr().IsUnspecified())
}
