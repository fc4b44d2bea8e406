// SPDX-License-Identifier: BSD-2-Clause

package pattern

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustPattern(t testing.TB, text string) Pattern {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPatternMatch(t *testing.T) {
	bound := func(pairs ...string) map[string]string {
		m := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	cases := []struct {
		pattern, name string
		want          map[string]string // nil: no match
	}{
		{"/corpus/public/**", "/corpus/public/17.txt", bound()},
		{"/corpus/public/**", "/corpus/public/a/b", bound()},
		{"/corpus/public/**", "/corpus/public", nil},
		{"/corpus/public/**", "/corpus/public/", nil},
		{"/corpus/public/**", "/corpus/publicity/1", nil},
		{"/corpus/private/{owner}/**", "/corpus/private/alice/1.txt", bound("owner", "alice")},
		{"/corpus/private/{owner}/**", "/corpus/private/alice", nil},
		{"/corpus/private/{owner}/**", "/corpus/private//1.txt", nil},
		{"profile:{owner}", "profile:alice", bound("owner", "alice")},
		{"profile:{owner}", "profile:", nil},
		{"profile:{owner}", "profile:alice/x", nil},
		{"/a/*/c", "/a/b/c", bound()},
		{"/a/*/c", "/a/b/d", nil},
		{"/a/x{n}y/{m}", "/a/x1y/2", bound("n", "1", "m", "2")},
		{"/a/x{n}y/{m}", "/a/xy/2", nil},
		{"history:{user}:{region}", "history:alice:de", bound("user", "alice", "region", "de")},
		{"history:{user}:{region}", "history:alice:x:de", nil}, // alice, or alice:x?
		{"history:{user}:{region}", "history:alice:", nil},
		{"history:{user}:{region}", "history::de", nil},
		{"history:{user}:{region}", "history:alice", nil},
		{"/{a}--{b}.txt", "/x-y--z.txt", bound("a", "x-y", "b", "z")},
		{"/{a}--{b}.txt", "/x---z.txt", nil}, // x and -z, or x- and z?
		{"/a", "/a", bound()},
		{"/a", "/a/b", nil},
		{"/a/b", "/a", nil},
	}
	for _, c := range cases {
		got, ok := mustPattern(t, c.pattern).Match(c.name)
		if ok != (c.want != nil) || ok && len(got)+len(c.want) > 0 && !cmp.Equal(got, c.want) {
			t.Errorf("%s on %s: %v, %v; want %v", c.pattern, c.name, got, ok, c.want)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for text, want := range map[string]string{
		"/a/**/b":    "last segment",
		"/{a}/{a}":   "twice",
		"/a//b":      "empty segment",
		"/a/":        "empty segment",
		"/a/../b":    `".."`,
		"/a*":        "whole segment",
		"/{a":        "{name}",
		"/a}":        "} without {",
		"/{}":        "{name}",
		"/{a}{b}":    "put text between",
		"/{a}-{a}":   "twice",
		"/{a{b}}":    "{name}",
		"/x/{a}/b}c": "} without {",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}

func TestMostSpecificPattern(t *testing.T) {
	patterns := []Pattern{
		mustPattern(t, "/corpus/**"), mustPattern(t, "/corpus/{kind}/**"), mustPattern(t, "/corpus/private/{owner}/**"),
		mustPattern(t, "/corpus/private/alice/**"), mustPattern(t, "/corpus/private/alice/diary.txt"),
	}
	if err := CheckAmbiguity(patterns); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"/corpus/x": 0, "/corpus/x/y": 1, "/corpus/private/bob/1": 2, "/corpus/private/alice/1": 3,
		"/corpus/private/alice/diary.txt": 4, "/else": -1,
	} {
		for range 2 { // and in the other order
			got, _ := MostSpecific(patterns, name)
			if got != want {
				t.Errorf("%s: pattern %d, want %d", name, got, want)
			}
		}
	}
}

func TestAmbiguousPatternsNameBoth(t *testing.T) {
	for _, pair := range [][2]string{
		{"/a/{x}/c", "/a/b/{y}"}, {"/a/**", "/a/**"}, {"/a/{x}", "/a/*"}, {"/x{a}", "/{a}x"}, {"/{a}:{b}", "/{c}:{d}"},
		{"/{a}:{b}", "/{c}-{d}"}, {"/{a}/**", "/{b}/**"},
	} {
		err := CheckAmbiguity([]Pattern{mustPattern(t, pair[0]), mustPattern(t, pair[1])})
		if err == nil || !strings.Contains(err.Error(), pair[0]) || !strings.Contains(err.Error(), pair[1]) {
			t.Errorf("%v: %v", pair, err)
		}
	}
}

func TestArguments(t *testing.T) {
	got := Fill(map[string]string{"owner": "{who}", "list": "friends/{who}-{n}", "plain": "x{", "other": "{else}"},
		map[string]string{"who": "alice", "n": "{who}"})
	want := map[string]string{"owner": "alice", "list": "friends/alice-{who}", "plain": "x{", "other": "{else}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p := mustPattern(t, "/a/{owner}/**")
	if err := p.CheckReferences(map[string]string{"owner": "{owner}", "x": "y"}); err != nil {
		t.Error(err)
	}
	if err := p.CheckReferences(map[string]string{"owner": "{onwer}"}); err == nil ||
		!strings.Contains(err.Error(), "{onwer}") {
		t.Errorf("a misspelt hole: %v", err)
	}
}

var segmentTexts = []string{"a", "b", "ab", "*", "{x}", "a{x}", "{x}b", "a{x}b", "{x}b{y}", "a{x}b{y}", "{x}a{y}b"}

// within and meets agree with what the patterns match, name by name.
func TestPatternOrderAgreesWithMatching(t *testing.T) {
	draw := func(rt *rapid.T, label string) Pattern {
		count := rapid.IntRange(1, 3).Draw(rt, label+" length")
		text := ""
		for i := range count {
			part := rapid.SampledFrom(segmentTexts).Draw(rt, label)
			text += "/" + strings.NewReplacer("x", string(rune('p'+i)), "y", string(rune('s'+i))).Replace(part)
		}
		if rapid.Bool().Draw(rt, label+" rest") {
			text += "/**"
		}
		p, err := Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		return p
	}
	rapid.Check(t, func(rt *rapid.T) {
		p, q := draw(rt, "p"), draw(rt, "q")
		for range 20 {
			name := ""
			for range rapid.IntRange(1, 4).Draw(rt, "length") {
				name += "/" + rapid.SampledFrom([]string{"a", "b", "ab", "aab", "abb", "aabb", "c"}).Draw(rt, "part")
			}
			_, inP := p.Match(name)
			_, inQ := q.Match(name)
			if inP && !inQ && p.Within(q) {
				rt.Fatalf("%s within %s, but %s", p.text, q.text, name)
			}
			if inP && inQ && !p.Meets(q) {
				rt.Fatalf("%s does not meet %s, but %s", p.text, q.text, name)
			}
		}
	})
}

// Meetings finds what comparing every pattern with every other finds.
func TestMeetingsMissesNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var patterns []Pattern
		for range rapid.IntRange(0, 12).Draw(rt, "patterns") {
			text := "/" + rapid.SampledFrom(segmentTexts).Draw(rt, "first")
			if rapid.Bool().Draw(rt, "second") {
				text += "/" + strings.ReplaceAll(strings.ReplaceAll(rapid.SampledFrom(segmentTexts).Draw(rt, "second"),
					"x", "p"), "y", "q")
			}
			patterns = append(patterns, mustPattern(t, text))
		}
		want, got := map[[2]int]bool{}, map[[2]int]bool{}
		for i, p := range patterns {
			for j, q := range patterns[:i] {
				if p.Meets(q) {
					want[[2]int{j, i}] = true
				}
			}
		}
		Meetings(patterns, func(i, j int) bool {
			got[[2]int{i, j}] = true
			return true
		})
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Error(diff)
		}
	})
}
