// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Comparisons that must succeed, and, as twins, those that must not. The first rule is
// that of x, the second that of y.
func TestRuleAtLeast(t *testing.T) {
	denied := []string{"denied"}
	tests := []struct {
		name, first, second string
		facts               []string
		want                []string // conditions; denied when it must not hold
	}{
		{"nobody", "", `sKeyIs("a")`, nil, nil},
		{"somebody against nobody", `sKeyIs("a")`, "", nil, denied},
		{"anybody", `sKeyIs("a")`, `true`, nil, nil},
		{"fewer readers", `sKeyIs("a"), sRegionIs("r")`, `sKeyIs("a")`, nil, nil},
		{"more readers", `sKeyIs("a")`, `sKeyIs("a"), sRegionIs("r")`, nil, denied},
		{"another reader", `sKeyIs("a")`, `sKeyIs("b")`, nil, denied},
		{"contradiction", `sRegionIs("r"), sRegionIs("s")`, `sKeyIs("b")`, nil, nil},
		{"key and name may differ", `sKeyIs("k"), sKeyIs("a")`, `sKeyIs(K), eq(K, "a")`, nil, nil},
		{"this differs", `cNameIs(this)`, `cNameIs(this)`, nil, denied},

		{"fact", `sKeyIs("a")`, `sKeyIs(K), "l" says f(K)`, []string{`l says f ["a"]`}, []string{`"l" says f("a")`}},
		{"no fact", `sKeyIs("a")`, `sKeyIs(K), "l" says f(K)`, []string{`l says f ["b"]`}, denied},
		{"fact of everybody", `sKeyIs(K)`, `sKeyIs(K), "l" says f(K)`, []string{`l says f ["b"]`}, denied},
		{"assumed fact", `sKeyIs(K), "l" says f(K)`, `sKeyIs(K), "l" says f(K)`, nil, nil},
		{"assumed fact of another conduit", `sKeyIs(K), "m" says f(K)`, `sKeyIs(K), "l" says f(K)`,
			[]string{`m says f ["a"]`}, denied},
		{"case by case", `sKeyIs(K), "l" says f(K)`, `sKeyIs(K), "m" says f(K)`,
			[]string{`l says f ["a"]`, `m says f ["a"]`},
			[]string{`"m" says f("a")`, `what "l" says of f(_) is unchanged`}},
		{"not every case", `sKeyIs(K), "l" says f(K)`, `sKeyIs(K), "m" says f(K)`,
			[]string{`l says f ["a"]`, `l says f ["b"]`, `m says f ["a"]`}, denied},
		{"no case", `sKeyIs(K), "l" says f(K)`, `sKeyIs("b")`, nil, []string{`"l" does not say f(_)`}},
		{"positioned", `sKeyIs("a")`, `"l"@7 says f("a")`, []string{`l@7 says f ["a"]`}, []string{`"l"@7 says f("a")`}},
		{"at another place", `sKeyIs("a")`, `"l"@7 says f("a")`, []string{`l@8 says f ["a"]`}, denied},

		{"computed", `sKeyIs("a")`, `sKeyIs(K), concat(L, "l/", K), L says f(K)`, []string{`l/a says f ["a"]`},
			[]string{`"l/a" says f("a")`}},
		{"assumed computation", `sKeyIs(K), concat(L, "l/", K), L says f("b")`,
			`sKeyIs(K), concat(M, "l/", K), M says f(_)`, nil, nil},
		{"another computation", `sKeyIs(K), concat(L, "m/", K), L says f("b")`,
			`sKeyIs(K), concat(M, "l/", K), M says f(_)`, nil, denied},
		{"arithmetic", `"l" says f(V), add(W, V, 1), "m" says f(W)`, `"l" says f(V), add(W, V, 1), "m" says f(W)`, nil,
			nil},

		{"smaller bound", `"l" says f(V), lt(V, 5)`, `"l" says f(V), lt(V, 6)`, nil, nil},
		{"same bound, not strict", `"l" says f(V), lt(V, 5)`, `"l" says f(V), le(5, 5), le(V, 5)`, nil, nil},
		{"larger bound", `"l" says f(V), lt(V, 6)`, `"l" says f(V), lt(V, 5)`, []string{`l says f [5]`}, denied},
		{"strict from not strict", `"l" says f(V), le(V, 5)`, `"l" says f(V), lt(V, 5)`, []string{`l says f [5]`},
			denied},
		{"equal from less", `"l" says f(V), lt(V, 5)`, `"l" says f(V), eq(V, 5)`, []string{`l says f [4]`}, denied},
		{"mirrored", `"l" says f(V), gt(5, V)`, `"l" says f(V), lt(V, 5)`, nil, nil},
		{"unequal from less", `"l" says f(V), lt(V, 5)`, `"l" says f(V), neq(V, 5), neq(6, V)`, nil, nil},
		{"unequal, but not from less", `"l" says f(V), lt(V, 5)`, `"l" says f(V), neq(V, 4)`, []string{`l says f [4]`},
			denied},
		{"greater", `"l" says f(V), gt(V, 5)`, `"l" says f(V), ge(V, 4), neq(V, 3)`, nil, nil},
		{"not that much greater", `"l" says f(V), gt(V, 5)`, `"l" says f(V), ge(V, 7)`, []string{`l says f [6]`},
			denied},
		{"two variables", `"l" says g(V, W), lt(V, W)`, `"l" says g(V, W), neq(W, V)`, nil, nil},
		{"two variables crossed", `"l" says g(V, W), lt(V, W)`, `"l" says g(V, W), lt(W, V)`,
			[]string{`l says g [1,2]`}, denied},

		{"narrower network", `sIpIs(I), ipPrefix(I, "10.1.0.0/16")`, `sIpIs(I), ipPrefix(I, "10.0.0.0/8")`, nil, nil},
		{"wider network", `sIpIs(I), ipPrefix(I, "10.0.0.0/8")`, `sIpIs(I), ipPrefix(I, "10.1.0.0/16")`, nil, denied},
		{"address in network", `sIpIs("10.1.2.3")`, `sIpIs(I), ipPrefix(I, "10.1.0.0/16")`, nil, nil},

		{"not listed", `sKeyIs("a")`, `each in "l" says f(D) { neq(D, this) }`, []string{`l says f ["x"]`},
			[]string{`"l" does not say f("y")`}},
		{"listed", `sKeyIs("a")`, `each in "l" says f(D) { neq(D, this) }`, []string{`l says f ["y"]`}, denied},
		{"not listed under a key", `sKeyIs("a")`, `sKeyIs(K), each in "l" says g(K, D) { neq(this, D) }`,
			[]string{`l says g ["b","y"]`}, []string{`"l" does not say g("a", "y")`}},
		{"not listed on the diagonal", `sKeyIs("a")`, `each in "l" says g(D, D) { neq(D, this) }`,
			[]string{`l says g ["y","z"]`}, []string{`"l" does not say g("y", "y")`}},
		{"each met", `sKeyIs("a")`, `each in "l" says f(D) { lt(D, 5) }`, []string{`l says f [4]`, `l says f [3]`},
			[]string{`what "l" says of f(_) is unchanged`}},
		{"each not met", `sKeyIs("a")`, `each in "l" says f(D) { lt(D, 5) }`, []string{`l says f [4]`, `l says f [5]`},
			denied},
		{"each by facts", `sKeyIs("a")`, `each in "l" says f(D) { "m" says f(D) }`,
			[]string{`l says f [4]`, `m says f [4]`},
			[]string{`"m" says f(4)`, `what "l" says of f(_) is unchanged`}},
		{"each of none", `sKeyIs("a")`, `each in "l" says f(D) { lt(D, 5) }`, nil, []string{`"l" does not say f(_)`}},
		{"each of an open key", `sKeyIs(K)`, `sKeyIs(K), each in "l" says g(K, D) { neq(D, "z") }`,
			[]string{`l says f ["z"]`}, []string{`"l" does not say g(_, _)`}},
		{"each of a listed open key", `sKeyIs(K)`, `sKeyIs(K), each in "l" says g(K, D) { neq(D, "z") }`,
			[]string{`l says g ["b","z"]`}, denied},
		{"range", `sKeyIs("a")`, `each in "l"@0..9 says f(D) { neq(D, "z") }`, []string{`l@9 says f ["z"]`},
			[]string{`what "l" says of f(_) is unchanged`}},
		{"in range", `sKeyIs("a")`, `each in "l"@0..10 says f(D) { neq(D, "z") }`, []string{`l@9 says f ["z"]`},
			denied},

		{"assumed each", `sRegionIs(R), each in R says f(D) { neq(D, "z") }`,
			`sRegionIs(S), each in S says f(E) { neq("z", E) }`, nil, nil},
		{"assumed each of another value", `sRegionIs(R), each in R says f(D) { neq(D, "w") }`,
			`sRegionIs(S), each in S says f(E) { neq("z", E) }`, nil, denied},
		{"assumed each with less", `sRegionIs(R), each in R says f(D) { neq(D, "z") }`,
			`sRegionIs(S), each in S says f(E) { neq("z", E), neq("w", E) }`, nil, denied},
		{"assumed each with more", `sRegionIs(R), each in R says f(D) { neq(D, "z"), neq(D, "w") }`,
			`sRegionIs(S), each in S says f(E) { neq("z", E) }`, nil, nil},
		{"assumed each with facts", `sRegionIs(R), each in R says f(D) { "l" says g(D, N), lt(N, 3) }`,
			`sRegionIs(S), each in S says f(E) { "l" says g(E, M), lt(M, 4) }`, nil, nil},
		{"assumed each of fewer tuples", `sRegionIs(R), each in R says g(D, D) { neq(D, "z") }`,
			`sRegionIs(S), each in S says g(D, E) { neq(D, "z") }`, nil, denied},
		{"assumed each of named tuples", `sRegionIs(R), each in R says g("a", D) { neq(D, "z") }`,
			`sRegionIs(S), each in S says g(C, D) { neq(D, "z") }`, nil, denied},
		{"assumed each of more tuples", `sRegionIs(R), each in R says g(C, D) { neq(D, "z") }`,
			`sRegionIs(S), each in S says g("a", D) { neq(D, "z") }`, nil, nil},
		{"willsay", `each in "y" willsay f(D) { lt(D, 3) }`, `each in "y" willsay f(D) { lt(D, 4) }`, nil, nil},
		{"willsay nothing but", `each in "y" willsay g(C, D) { lt(D, 3) }`,
			`each in "y" willsay g("a", D) { lt(D, 4) }`, nil, denied},
		{"willsay of the state", `sKeyIs("a")`, `each in "y" willsay f(D) { lt(D, 4) }`, nil, denied},

		{"before the end", `sKeyIs("a")`, `timeIs(T), lt(T, 2026-06-01T13:00:00Z)`, nil,
			[]string{"before 2026-06-01T13:00:00Z"}},
		{"after the end", `sKeyIs("a")`, `timeIs(T), lt(T, 2026-06-01T12:00:00Z)`, nil, denied},
		{"at the end", `sKeyIs("a")`, `timeIs(T), le(T, 2026-06-01T12:00:00Z)`, nil,
			[]string{"before 2026-06-01T12:00:00.000000001Z"}},
		{"after the beginning", `sKeyIs("a")`, `timeIs(T), ge(T, 2026-06-01T12:00:00Z)`, nil,
			[]string{"from 2026-06-01T12:00:00Z"}},
		{"before the beginning", `sKeyIs("a")`, `timeIs(T), gt(T, 2026-06-01T12:00:00Z)`, nil, denied},
		{"ends earlier", `timeIs(T), lt(T, 2026-06-01T11:00:00Z)`, `timeIs(T), lt(T, 2026-06-01T11:30:00Z)`, nil, nil},
		{"equal from less, by the clock", `timeIs(T), lt(T, 2026-06-01T13:00:00Z)`,
			`timeIs(T), eq(T, 2026-06-01T13:00:00Z)`, nil, denied},
		{"computed from the clock", `sKeyIs("a")`, `timeIs(T), add(U, T, 60), lt(U, 2026-06-01T13:00:00Z)`, nil,
			[]string{"before 2026-06-01T12:00:00.000000001Z", "from 2026-06-01T12:00:00Z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule := func(text string) *Policy {
				if text == "" {
					return mustBind(t, "policy nobody { }")
				}
				return mustBind(t, "read :- "+text+".")
			}
			state := stateOf(t, test.facts...)
			environment := Environment{Now: noon}
			ok, conditions := ruleIsAtLeast(rule(test.first).Read("x"), rule(test.second).Read("y"), state, environment)
			got := conditionTexts(conditions)
			if !ok {
				got = denied
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if !allHold(conditions, state, environment) {
				t.Errorf("the conditions %v do not hold", conditions)
			}
		})
	}
}

// A fact that appears breaks "unchanged", and nothing else does.
func TestUnchangedBreaks(t *testing.T) {
	first, second := mustBind(t, `read :- sKeyIs("a").`), mustBind(t, `read :- each in "l" says f(D) { lt(D, 5) }.`)
	ok, conditions := ruleIsAtLeast(first.Read("x"), second.Read("x"), stateOf(t, `l says f [4]`), Environment{})
	if !ok || len(conditions) != 1 {
		t.Fatalf("%v %v", ok, conditions)
	}
	for fact, holds := range map[string]bool{`l says f [6]`: false, `l says g [6,6]`: true, `m says f [6]`: true} {
		if conditions[0].Holds(stateOf(t, `l says f [4]`, fact), Environment{}) != holds {
			t.Errorf("with %s: want %v", fact, holds)
		}
	}
}

func TestLabelAtLeast(t *testing.T) {
	const read = `read :- sKeyIs("a"). `
	tests := []struct {
		name, first, second string
		allowed             bool
	}{
		{"same exit", `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`,
			`declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`, true},
		{"no exit", ``, `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`, true},
		{"an exit too many", `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`, ``, false},
		{"a narrower exit", `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor), cIsInternal().`,
			`declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`, true},
		{"a wider exit", `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`,
			`declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor), cIsInternal().`, false},
		{"one of two exits", `declassify :- isAsRestrictive(read, this.read) until cIsInternal().`,
			`declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
			 declassify :- isAsRestrictive(read, this.read) until cIsInternal().`, true},
		{"still kept behind the exit", `update :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until (cIsInternal(), isAsRestrictive(read, this.update)).`,
			``, true},
		{"another reader behind the exit", `update :- sKeyIs("b"). declassify :- isAsRestrictive(read, this.read) until (cIsInternal(), isAsRestrictive(read, this.update)).`,
			``, false},
		{"the same exit with another constant", `declassify :- isAsRestrictive(read, this.read) until cTypeIs("a").`,
			`declassify :- isAsRestrictive(read, this.read) until cTypeIs("b").`, false},
		{"an exit by the name of another conduit", `declassify :- isAsRestrictive(read, this.read) until cNameIs(this).`,
			`declassify :- isAsRestrictive(read, this.read) until cNameIs(this).`, false},
		{"an exit by another rule", `update :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read) until isAsRestrictive(this.update, this.read).`,
			`update :- sKeyIs("b"). declassify :- isAsRestrictive(read, this.read) until isAsRestrictive(this.update, this.read).`, false},
		{"free", `declassify :- true.`, ``, false},
		{"against free", ``, `declassify :- true.`, true},
		{"two obligations", `update :- sKeyIs("a"), sRegionIs("r"). declassify :- isAsRestrictive(read, this.read), isAsRestrictive(read, this.update).`,
			`update :- sRegionIs("r"). declassify :- isAsRestrictive(read, this.update).`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			first, second := mustBind(t, read+test.first).Label("x"), mustBind(t, read+test.second).Label("y")
			if ok, conditions := labelIsAtLeast(first, second, stateOf(t),
				Environment{Now: noon}); ok != test.allowed || len(conditions) > 0 {
				t.Errorf("%v %v, want %v without conditions", ok, conditions, test.allowed)
			}
		})
	}
}

func TestUntilTimeEndsAnObligation(t *testing.T) {
	taint := mustBind(t, `read :- sKeyIs("a").
		declassify :- isAsRestrictive(read, this.read) until timeIs(T), gt(T, 2026-06-01T12:00:00Z).`).Label("x")
	open := Conduit{Name: "open", Kind: PipeConduit, Policy: mustBind(t, `read :- true. update :- true.`)}
	for now, allowed := range map[time.Time]bool{noon: false, noon.Add(1): true, {}: false} {
		if decision := mayWrite(taint, open, stateOf(t), Environment{Now: now}); decision.Allowed != allowed {
			t.Errorf("at %v: %v, want %v: %s", now, decision.Allowed, allowed, decision.Reason)
		}
	}
}

// A policy made to take for ever is cut off, and denied.
func TestStepsAreLimited(t *testing.T) {
	var facts []string
	for _, from := range "abcdefghij" {
		for _, to := range "abcdefghij" {
			facts = append(facts, `l says g ["`+string(from)+`","`+string(to)+`"]`)
		}
	}
	var body strings.Builder
	for i := range 12 {
		body.WriteString(`"l" says g(V` + string(rune('A'+i)) + `, V` + string(rune('B'+i)) + `), `)
	}
	p := mustBind(t, `read :- `+body.String()+`mul(7, VA, VM).`)
	decision := evaluate(p.Read("x"), stateOf(t, facts...), Environment{})
	if decision.Allowed || !errors.Is(decision.Err, ErrTooManySteps) ||
		!strings.Contains(decision.Reason, ErrTooManySteps.Error()) {
		t.Errorf("allowed %v, error %v, reason %q; want ErrTooManySteps", decision.Allowed, decision.Err,
			decision.Reason)
	}
	if ok, _ := ruleIsAtLeast(p.Read("x"), mustBind(t, `read :- sKeyIs("a").`).Read("x"), stateOf(t, facts...),
		Environment{}); ok {
		t.Error("a comparison that ran out of steps was claimed")
	}
}
