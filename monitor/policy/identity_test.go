// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

// writtenPart finds what a policy's text says beside its structure: constants, relations, and rules that it refers to.
var writtenPart = regexp.MustCompile(`"[^"]*"|\b\d[\dT:Z-]*\b|\b(?:says|willsay) [fg]\b|` +
	`this\.(?:read|update)\b|@\w+(?:\.\.\d)?`)

// otherPart draws something of the same form.
func otherPart(t *rapid.T, part string) string {
	var others []string
	switch {
	case part[0] == '@':
		others = []string{"", "@_", "@0", "@1", "@2", "@1..2", "@1..3", "@0..2"}
	case part == "this.read", part == "this.update":
		others = []string{"this.read", "this.update"}
	case part[0] == '"':
		others = []string{`"a"`, `"b"`, `"l/a"`, `"l/b"`, `"p"`, `"r"`, `"x"`, `"egress"`}
	case part[0] >= '0' && part[0] <= '9':
		others = []string{"0", "1", "2", "3"}
	default:
		others = []string{"says f", "says g", "willsay f", "willsay g"}
	}
	return rapid.SampledFrom(others).Draw(t, "other part")
}

// changedPart draws a text that differs in one of these parts.
func changedPart(t *rapid.T, text string) string {
	places := writtenPart.FindAllStringIndex(text, -1)
	if len(places) == 0 {
		return text
	}
	at := rapid.SampledFrom(places).Draw(t, "place")
	return text[:at[0]] + otherPart(t, text[at[0]:at[1]]) + text[at[1]:]
}

// Policies that differ in one constant, place, relation or rule have one identity, or one key of their labels, only
// if they mean the same: who may read the conduit, and where data of it may go.
func TestEqualIdentitiesMeanTheSame(t *testing.T) {
	equal := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			text := "read :- " + tuplesText(t) + ".\nupdate :- sKeyIs(\"a\").\n" + exitText().Draw(t, "exits")
			changed := changedPart(t, text)
			template, err := CompileAccepted("random", []byte(changed))
			if err != nil || changed == text {
				continue
			}
			other, err := template.bindValues()
			if err != nil {
				t.Fatal(err)
			}
			p := mustBind(t, text)
			if p.ID() != other.ID() && p.Label("x").Key() != other.Label("x").Key() {
				continue
			}
			equal++
			nearlyAsked(t, p.Read("x"), func(facts []Fact, flow Environment) {
				where := oracle{facts: facts, environment: flow}
				if p.ID() == other.ID() && where.rule(p.Read("x")) != where.rule(other.Read("x")) {
					t.Fatalf("one identity, but for %+v of %v only one may be read:\n%s\n%s", flow.Session, facts, text, changed)
				}
				state := StateOf(baseOf(facts), NewConduitTable())
				if p.Label("x").Key() == other.Label("x").Key() && mayLeave(p.Label("x"), *flow.Target, state, flow).Allowed !=
					mayLeave(other.Label("x"), *flow.Target, state, flow).Allowed {
					t.Fatalf("one key, but to %+v in %v only one may go:\n%s\n%s", flow.Target, facts, text, changed)
				}
			})
		}
	})
	if !t.Failed() && equal == 0 {
		t.Error("no two policies were equal: the test has become too weak")
	}
}

// Random policies seldom refer to a rule.
func TestIdentitiesKnowTheRulesTheyReferTo(t *testing.T) {
	for _, texts := range [][2]string{
		{`read :- sKeyIs("a"). update :- isAsRestrictive(this.read, this.update).`,
			`read :- sKeyIs("a"). update :- isAsRestrictive(this.update, this.read).`},
		{`read :- hasPol(1, P), isAsRestrictive(P.read, this.update).`,
			`read :- hasPol(1, P), isAsRestrictive(P.update, this.update).`},
	} {
		if mustBind(t, texts[0]).ID() == mustBind(t, texts[1]).ID() {
			t.Errorf("one identity:\n%s\n%s", texts[0], texts[1])
		}
	}
}

// A joined label demands what each of its parts demands: of several obligations, and of one policy on several conduits.
func TestJoinedLabelsDemandAll(t *testing.T) {
	listed := mustBind(t, `read :- sKeyIs(K), this says f(K).`)
	parts := map[string]Label{"x": listed.Label("x"), "y": listed.Label("y"),
		"r": mustBind(t, `read :- sRegionIs("r").`).Label("z")}
	state := stateOf(t, `x says f ["a"]`, `y says f ["a"]`, `x says f ["only x"]`, `y says f ["only y"]`)
	keys := map[string]bool{}
	for _, order := range [][]string{{"x", "y", "r"}, {"r", "y", "x"}, {"y", "r", "x"}} {
		first, second, third := parts[order[0]], parts[order[1]], parts[order[2]]
		for _, all := range []Label{first.Join(second).Join(third), first.Join(second.Join(third)),
			third.Join(third.Join(second)).Join(first)} {
			keys[all.Key()] = true
			for _, test := range []struct {
				reader, region string
				allowed        bool
			}{{"a", "r", true}, {"a", "s", false}, {"only x", "r", false}, {"only y", "r", false}} {
				got := mayLeave(all, Conduit{Kind: ConnectionConduit}, state,
					Environment{Session: session(test.reader, test.region)})
				if got.Allowed != test.allowed {
					t.Errorf("%v: %s from %s: %v, want %v", order, test.reader, test.region, got.Allowed, test.allowed)
				}
			}
		}
	}
	if len(keys) != 1 || parts["x"].Key() == parts["y"].Key() {
		t.Errorf("%d keys of one label; or one key of two: %v", len(keys), parts)
	}
}
