// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func seeds(f *testing.F) {
	names, err := filepath.Glob("library/*.pol")
	if err != nil || len(names) == 0 {
		f.Fatalf("no library to start from: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		`read :- timeIs(T), add(U, T, 60), lt(U, 2027-01-31T00:00:00.5Z), rem(_, -9223372036854775808, -1).`,
		`declassify :- (isAsRestrictive(read, this.read) until cIsInternal()), isAsRestrictive(read, this.update) until (cKindIs(pipe) until true).`,
		`read :- "l"@O says t(O), each in "l"@0..O says t(X) { each in "m" says t(Y) { neq(X, Y) } }, ipPrefix("::1", "::/0").`,
		"policy a { read :- true } policy b(c: time, d: integer) { update :- \"\\x00\" willsay t(c, d). }",
	} {
		f.Add([]byte(text))
	}
}

// For any text: no panic, errors have positions in it, and a text that parses survives
// formatting.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("fuzz", text)
		if err != nil {
			checkErrors(t, err, text)
			return
		}
		if len(text) < MaxText/4 { // the canonical text may be longer than the limit otherwise
			checkRoundTrip(t, text)
		}
		if _, err := file.Compile(); err != nil {
			checkErrors(t, err, text)
		}
	})
}

func checkErrors(t *testing.T, err error, text []byte) {
	var mistakes Errors
	if !errors.As(err, &mistakes) || len(mistakes) == 0 {
		t.Fatalf("the error has no places: %v", err)
	}
	lines := strings.Count(string(text), "\n") + 1
	for _, mistake := range mistakes {
		if mistake.Line < 1 || mistake.Line > lines || mistake.Column < 1 || mistake.Column > len(text)+1 ||
			mistake.Message == "" {
			t.Fatalf("misplaced: %v", mistake)
		}
		if mistake.Expected == "" && mistake.Hint == "" || mistake.Code == "" {
			t.Fatalf("the error has no remedy: %+v", mistake)
		}
	}
}

// A text that compiles can be bound, evaluated and compared with itself and others, in a
// limited number of steps and without a panic.
func FuzzDecide(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("fuzz", text)
		if err != nil {
			return
		}
		templates, err := file.Compile()
		if err != nil {
			return
		}
		worker := mustBind(t, `read :- sKeyIs("alice"), sRegionIs("de"). declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`)
		for _, template := range templates[:min(len(templates), 3)] {
			values := make([]string, len(template.parameters))
			for i, kind := range template.types {
				values[i] = map[ValueKind]string{StringValue: "alice", IntegerValue: "7",
					TimeValue: "2027-01-01T00:00:00Z"}[kind]
			}
			decideEverything(t, template, mustBindTemplate(t, template, values...), worker)
		}
	})
}

func decideEverything(t *testing.T, template *Template, p, worker *Policy) {
	state := world(t)
	target := Conduit{ID: 1, Name: "/1", Kind: DescriptorConduit, Type: "conduit-ids", Policy: p}
	environment := Environment{Now: noon, Explain: true, Steps: 2000,
		Session: &Session{Principal: "alice", Key: "00", Region: "de", IP: netip.MustParseAddr("10.0.0.1")},
		Update:  &Update{Facts: []Fact{{Relation: "conduit", Arguments: []Value{Integer(2)}}}, NewLength: 5}}
	label, taint := p.Label("/1"), worker.Label("")
	if ok, conditions := labelIsAtLeast(label, label, state, environment); !ok || len(conditions) > 0 {
		t.Fatalf("a label is not at least as restrictive as itself: %v %v", ok, conditions)
	}
	for _, decision := range []Decision{
		mayRead(taint, label, state, environment), mayRead(label, taint, state, environment),
		mayWrite(taint, target, state, environment), mayWrite(label, target, state, environment),
		mayLeave(label, target, state, environment),
	} {
		environment := environment
		environment.Target = &target
		checkConditions(t, decision, StateOf(state, NewConduitTable(append(worldConduits(t), target)...)), environment)
		_ = decision.Derivation.String()
	}
	template.Candidates(taint, state, environment)
	template.Candidates(label, state, environment)
}

// The inputs that are too much, one for each limit.
func TestLimits(t *testing.T) {
	repeat := strings.Repeat
	tests := []struct {
		name, text string
		limit      error
	}{
		{"text", repeat("#", MaxText+1), ErrTextTooLong},
		{"clauses", repeat("read :- true.\n", MaxClauses+1), ErrTooManyClauses},
		{"literals", "read :- sKeyIs(K)" + repeat(", sKeyIs(K)", MaxLiterals) + ".", ErrTooManyLiterals},
		{"depth", "read :- " + repeat("(", MaxDepth+1) + "true" + repeat(")", MaxDepth+1) + ".", ErrTooDeep},
		{"arguments", `read :- "l" says t(1` + repeat(", 1", MaxArguments) + ").", ErrTooManyArguments},
		{"parameters", "policy p(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q) { }", ErrTooManyArguments},
		{"variables", `read :- "l" says t(_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_)` +
			repeat(`, "l" says t(_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_)`, 4) + ".", ErrTooManyVariables},
		{"string", `read :- sKeyIs("` + repeat("a", MaxString+1) + `").`, ErrStringTooLong},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := CompileText("big.pol", []byte(test.text))
			if !errors.Is(err, test.limit) {
				t.Errorf("got %v, want %v", err, test.limit)
			}
		})
	}
	if _, err := mustCompile(t, "policy p(q) { read :- sKeyIs(q). }").bindValues(repeat("a",
		MaxString+1)); !errors.Is(err, ErrStringTooLong) {
		t.Errorf("binding a long argument: %v", err)
	}
}

func mustCompile(t testing.TB, text string) *Template {
	t.Helper()
	template, err := CompileText("test.pol", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return template
}
