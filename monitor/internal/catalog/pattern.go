// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A pattern is a conduit path with holes, such as "/corpus/private/{owner}/**" or
// "profile:{owner}". In a segment, {name} stands for one or more bytes other than
// "/", with text before or after it; "*" is a whole segment whose value does not
// matter; a final "**" is one or more segments.
type pattern struct {
	text     string
	segments []segment
}

type segmentKind uint8

const (
	literal segmentKind = iota
	hole                // prefix, at least one byte, suffix
	rest                // everything that follows, at least one segment
)

type segment struct {
	kind   segmentKind
	prefix string // the whole text of a literal
	suffix string
	name   string // what a hole binds; empty for "*"
}

func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	bound := make(map[string]bool)
	parts := strings.Split(text, "/")
	for i, part := range parts {
		s, err := parseSegment(part)
		switch {
		case err != nil:
			return pattern{}, fmt.Errorf("path pattern %q: %w", text, err)
		case s.kind == rest && i != len(parts)-1:
			return pattern{}, fmt.Errorf("path pattern %q: ** must be the last segment", text)
		case bound[s.name]:
			return pattern{}, fmt.Errorf("path pattern %q: {%s} occurs twice; a name matches one segment", text, s.name)
		case part == "" && i != 0:
			return pattern{}, fmt.Errorf("path pattern %q: empty segment; no conduit's name has one", text)
		case part == "." || part == "..":
			return pattern{}, fmt.Errorf("path pattern %q: segment %q; no conduit's name has one", text, part)
		}
		if s.name != "" {
			bound[s.name] = true
		}
		p.segments = append(p.segments, s)
	}
	return p, nil
}

func parseSegment(text string) (segment, error) {
	switch text {
	case "**":
		return segment{kind: rest}, nil
	case "*":
		return segment{kind: hole}, nil
	}
	if strings.Contains(text, "*") {
		return segment{}, fmt.Errorf("* in %q must be a whole segment", text)
	}
	prefix, after, opened := strings.Cut(text, "{")
	if !opened {
		if strings.Contains(text, "}") {
			return segment{}, fmt.Errorf("} without { in %q", text)
		}
		return segment{kind: literal, prefix: text}, nil
	}
	name, suffix, closed := strings.Cut(after, "}")
	if !closed || name == "" || strings.ContainsAny(prefix, "}") || strings.ContainsAny(suffix, "{}") || strings.ContainsAny(name, "{") {
		return segment{}, fmt.Errorf("%q: expected at most one {name} in a segment", text)
	}
	return segment{kind: hole, prefix: prefix, suffix: suffix, name: name}, nil
}

// match reports whether name matches, and what the holes stand for.
func (p pattern) match(name string) (map[string]string, bool) {
	var bound map[string]string
	for i, s := range p.segments {
		if s.kind == rest {
			return bound, name != ""
		}
		part, after, more := strings.Cut(name, "/")
		if more == (i == len(p.segments)-1) || !s.accepts(part) {
			return nil, false
		}
		if s.name != "" {
			if bound == nil {
				bound = make(map[string]string, 1)
			}
			bound[s.name] = part[len(s.prefix) : len(part)-len(s.suffix)]
		}
		name = after
	}
	return bound, true
}

func (s segment) accepts(part string) bool {
	switch s.kind {
	case literal:
		return part == s.prefix
	case hole:
		return len(part) > len(s.prefix)+len(s.suffix) && strings.HasPrefix(part, s.prefix) && strings.HasSuffix(part, s.suffix)
	default:
		return part != ""
	}
}

// within reports whether every name that p matches is matched by q too: p is at
// least as specific.
func (p pattern) within(q pattern) bool {
	for i, s := range p.segments {
		if i >= len(q.segments) {
			return false
		}
		if q.segments[i].kind == rest {
			return true
		}
		if !s.within(q.segments[i]) {
			return false
		}
	}
	return len(p.segments) == len(q.segments)
}

func (s segment) within(other segment) bool {
	switch {
	case s.kind == rest:
		return false
	case other.kind == literal:
		return s.kind == literal && s.prefix == other.prefix
	case s.kind == literal:
		return other.accepts(s.prefix)
	default:
		return strings.HasPrefix(s.prefix, other.prefix) && strings.HasSuffix(s.suffix, other.suffix)
	}
}

// meets reports whether some name may match both. It may err towards true, which
// costs a user a clearer pattern and never a wrong policy.
func (p pattern) meets(q pattern) bool {
	for i := range max(len(p.segments), len(q.segments)) {
		if i >= len(p.segments) || i >= len(q.segments) {
			return false
		}
		a, b := p.segments[i], q.segments[i]
		if a.kind == rest || b.kind == rest {
			return true
		}
		if !a.meets(b) {
			return false
		}
	}
	return true
}

func (s segment) meets(other segment) bool {
	if s.kind == literal {
		return other.accepts(s.prefix)
	}
	if other.kind == literal {
		return s.accepts(other.prefix)
	}
	return (strings.HasPrefix(s.prefix, other.prefix) || strings.HasPrefix(other.prefix, s.prefix)) &&
		(strings.HasSuffix(s.suffix, other.suffix) || strings.HasSuffix(other.suffix, s.suffix))
}

// checkAmbiguity refuses patterns of which two may match the same name without one
// being more specific: which policy holds must not depend on the order of lines.
func checkAmbiguity(patterns []pattern) error {
	for i, p := range patterns {
		for _, q := range patterns[:i] {
			if p.meets(q) && p.within(q) == q.within(p) {
				return fmt.Errorf("path patterns %q and %q can match the same conduit and neither is more specific; make one narrower", q.text, p.text)
			}
		}
	}
	return nil
}

// mostSpecific is the index of the pattern that decides for name, or -1. The
// patterns have passed checkAmbiguity.
func mostSpecific(patterns []pattern, name string) (int, map[string]string) {
	best, bound := -1, map[string]string(nil)
	for i, p := range patterns {
		if b, ok := p.match(name); ok && (best < 0 || p.within(patterns[best])) {
			best, bound = i, b
		}
	}
	return best, bound
}

// fill replaces {name} in the arguments' values by what the holes stand for.
func fill(arguments, bound map[string]string) map[string]string {
	filled := make(map[string]string, len(arguments))
	for parameter, value := range arguments {
		filled[parameter] = substitute(value, bound)
	}
	return filled
}

func substitute(value string, bound map[string]string) string {
	var out strings.Builder
	for {
		before, after, opened := strings.Cut(value, "{")
		out.WriteString(before)
		name, remaining, closed := strings.Cut(after, "}")
		if !opened || !closed {
			if opened {
				out.WriteString("{" + after)
			}
			return out.String()
		}
		if replacement, known := bound[name]; known {
			out.WriteString(replacement)
		} else {
			out.WriteString("{" + name + "}")
		}
		value = remaining
	}
}

// checkReferences refuses an argument that uses a hole the pattern does not have.
func (p pattern) checkReferences(arguments map[string]string) error {
	known := make(map[string]string)
	for _, s := range p.segments {
		if s.name != "" {
			known[s.name] = ""
		}
	}
	for _, parameter := range slices.Sorted(maps.Keys(arguments)) {
		if value := substitute(arguments[parameter], known); strings.ContainsAny(value, "{}") {
			return fmt.Errorf("path pattern %q: argument %s: %q refers to a name that the pattern does not have", p.text, parameter, arguments[parameter])
		}
	}
	return nil
}
