// SPDX-License-Identifier: BSD-2-Clause

// Package pattern implements the path patterns of manifests, which are paths with
// holes: what a pattern matches, and whether two patterns can match the same name. It
// is pure.
package pattern

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Pattern is a conduit path with holes, such as "/corpus/private/{owner}/**" or
// "profile:{owner}". In a segment, {name} means one or more bytes other than "/", with
// text before or after it; "*" is a whole segment with any value; a final "**" is one or
// more segments. Several holes in a segment, such as "history:{user}:{region}", need text
// between them. Their values must not contain that text: a name that could be divided in
// two ways does not match.
type Pattern struct {
	text     string
	segments []segment
}

type segmentKind uint8

const (
	literal segmentKind = iota
	hole                // prefix, at least one byte, suffix; or several of them
	rest                // everything that follows, at least one segment
)

type segment struct {
	kind   segmentKind
	prefix string // the whole text of a literal
	suffix string
	names  []string // what the holes bind; none for "*"
	inner  []string // the texts between holes
}

// Parse reads a pattern.
func Parse(text string) (Pattern, error) {
	p := Pattern{text: text}
	bound := make(map[string]bool)
	parts := strings.Split(text, "/")
	for i, part := range parts {
		s, err := parseSegment(part)
		switch {
		case err != nil:
			return Pattern{}, fmt.Errorf("path pattern %q: %w", text, err)
		case s.kind == rest && i != len(parts)-1:
			return Pattern{}, fmt.Errorf("path pattern %q: ** must be the last segment", text)
		case part == "" && i != 0:
			return Pattern{}, fmt.Errorf("path pattern %q: empty segment; no conduit's name has one", text)
		case part == "." || part == "..":
			return Pattern{}, fmt.Errorf("path pattern %q: segment %q; no conduit's name has one", text, part)
		}
		for _, name := range s.names {
			if bound[name] {
				return Pattern{}, fmt.Errorf("path pattern %q: {%s} occurs twice; a name stands for one value", text,
					name)
			}
			bound[name] = true
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
	if strings.Contains(prefix, "}") {
		return segment{}, fmt.Errorf("} without { in %q", text)
	}
	if !opened {
		return segment{kind: literal, prefix: text}, nil
	}
	s := segment{kind: hole, prefix: prefix}
	for opened {
		name, following, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.Contains(name, "{") {
			return segment{}, fmt.Errorf("%q: expected {name} with its closing brace", text)
		}
		s.names = append(s.names, name)
		var between string
		if between, after, opened = strings.Cut(following, "{"); strings.Contains(between, "}") {
			return segment{}, fmt.Errorf("} without { in %q", text)
		}
		switch {
		case opened && between == "":
			return segment{}, fmt.Errorf("%q: put text between {%s} and what follows; without it the end of the value is not known", text, name)
		case opened:
			s.inner = append(s.inner, between)
		default:
			s.suffix = between
		}
	}
	return s, nil
}

// String returns the pattern's source text.
func (p Pattern) String() string { return p.text }

// Root returns the path above the first segment with a hole, "" when that is the first one.
func (p Pattern) Root() string {
	var fixed []string
	for _, s := range p.segments {
		if s.kind != literal {
			break
		}
		fixed = append(fixed, s.prefix)
	}
	return strings.Join(fixed, "/")
}

// Match reports whether name matches, and returns the values of the holes.
func (p Pattern) Match(name string) (map[string]string, bool) {
	var bound map[string]string
	for i, s := range p.segments {
		if s.kind == rest {
			return bound, name != ""
		}
		part, after, more := strings.Cut(name, "/")
		if more == (i == len(p.segments)-1) || !s.accepts(part) {
			return nil, false
		}
		if len(s.names) > 0 {
			values, _ := s.values(part)
			if bound == nil {
				bound = make(map[string]string, len(values))
			}
			for i, name := range s.names {
				bound[name] = values[i]
			}
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
		_, ok := s.values(part)
		return ok
	default:
		return part != ""
	}
}

// values divides a segment into the holes' values. ok is false if the segment does not
// match, or matches in more than one way.
func (s segment) values(part string) (values []string, ok bool) {
	if len(part) <= len(s.prefix)+len(s.suffix) || !strings.HasPrefix(part, s.prefix) ||
		!strings.HasSuffix(part, s.suffix) {
		return nil, false
	}
	left := part[len(s.prefix) : len(part)-len(s.suffix)]
	for _, between := range s.inner {
		value, after, found := strings.Cut(left, between)
		if !found || value == "" {
			return nil, false
		}
		values, left = append(values, value), after
	}
	if values = append(values, left); left == "" {
		return nil, false
	}
	for _, between := range s.inner {
		if occurrences(part[len(s.prefix):len(part)-len(s.suffix)], between) != occurrencesIn(s.inner, between) {
			return nil, false
		}
	}
	return values, true
}

// occurrences counts where text begins in whole, including overlaps.
func occurrences(whole, text string) (count int) {
	for i := range len(whole) {
		if strings.HasPrefix(whole[i:], text) {
			count++
		}
	}
	return count
}

// occurrencesIn counts how often the texts between holes themselves contain text.
func occurrencesIn(inner []string, text string) (count int) {
	for _, between := range inner {
		count += occurrences(between, text)
	}
	return count
}

// MostSpecific returns the index of the pattern that decides for name, or -1. The
// patterns must have passed [CheckAmbiguity].
func MostSpecific(patterns []Pattern, name string) (int, map[string]string) {
	best, bound := -1, map[string]string(nil)
	for i, p := range patterns {
		if b, ok := p.Match(name); ok && (best < 0 ||
			p.Within(patterns[best])) { //nolint:gosec // best is an index of the range, or negative
			best, bound = i, b
		}
	}
	return best, bound
}

// Fill replaces {name} in the arguments' values by the values of the holes.
func Fill(arguments, bound map[string]string) map[string]string {
	filled := make(map[string]string, len(arguments))
	for parameter, value := range arguments {
		filled[parameter] = Substitute(value, bound)
	}
	return filled
}

// Substitute replaces each {name} in a text by its value. An unknown name stays as it is.
func Substitute(value string, bound map[string]string) string {
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
		replacement, known := bound[name]
		switch {
		case known && out.Len() == 0 && remaining == "":
			return replacement // not a copy
		case known:
			out.WriteString(replacement)
		default:
			out.WriteString("{" + name + "}")
		}
		value = remaining
	}
}

// CheckReferences refuses an argument that uses a hole the pattern does not have.
func (p Pattern) CheckReferences(arguments map[string]string) error {
	known := make(map[string]string)
	for _, s := range p.segments {
		for _, name := range s.names {
			known[name] = ""
		}
	}
	for _, parameter := range slices.Sorted(maps.Keys(arguments)) {
		if value := Substitute(arguments[parameter], known); strings.ContainsAny(value, "{}") {
			return fmt.Errorf("path pattern %q: argument %s: %q refers to a name that the pattern does not have",
				p.text, parameter, arguments[parameter])
		}
	}
	return nil
}
