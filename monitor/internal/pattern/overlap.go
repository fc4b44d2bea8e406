// SPDX-License-Identifier: BSD-2-Clause

package pattern

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Within reports whether q matches every name that p matches: p is at least as specific.
func (p Pattern) Within(q Pattern) bool {
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
	case len(other.inner) > 0:
		return s.prefix == other.prefix && s.suffix == other.suffix && slices.Equal(s.inner, other.inner)
	default:
		return strings.HasPrefix(s.prefix, other.prefix) && strings.HasSuffix(s.suffix, other.suffix)
	}
}

// Meets reports whether some name may match both. In doubt it returns true, which asks a
// user for a clearer pattern but never gives a wrong policy.
func (p Pattern) Meets(q Pattern) bool {
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

// Meetings calls each for every two of the patterns that some name may match both, with
// their indices, the lower first, until each returns false. Patterns that begin with
// different texts are not compared with each other.
func Meetings(patterns []Pattern, each func(i, j int) bool) {
	begins := make([]string, len(patterns))
	order := make([]int, len(patterns))
	for i, p := range patterns {
		order[i] = i
		begins[i] = p.text
		if at := strings.IndexAny(p.text, "{*"); at >= 0 {
			begins[i] = p.text[:at]
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(begins[a], begins[b]), cmp.Compare(a, b)) })
	var open []int // those whose text the current one's may begin with
	for _, i := range order {
		for len(open) > 0 && !strings.HasPrefix(begins[i], begins[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		for _, j := range open {
			if patterns[i].Meets(patterns[j]) && !each(min(i, j), max(i, j)) {
				return
			}
		}
		open = append(open, i)
	}
}

// Ambiguous reports whether it is undefined which of two patterns decides for a name that
// both match: neither is more specific.
func Ambiguous(p, q Pattern) bool { return p.Within(q) == q.Within(p) }

// CheckAmbiguity returns an error if two of the patterns may match the same name and
// neither is more specific: the policy must not depend on the order of lines.
func CheckAmbiguity(patterns []Pattern) (err error) {
	Meetings(patterns, func(i, j int) bool {
		if Ambiguous(patterns[i], patterns[j]) {
			err = fmt.Errorf("path patterns %q and %q can match the same conduit and neither is more specific; make one narrower", patterns[i], patterns[j])
		}
		return err == nil
	})
	return err
}
