// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// useOf is a literal with each predicate, as a policy writes it.
var useOf = [operations]string{
	opAdd: "add(X, 1, 2)", opSub: "sub(X, 2, 1)", opMul: "mul(X, 1, 2)", opDiv: "div(X, 2, 1)", opRem: "rem(X, 2, 1)",
	opConcat: `concat(X, "a", "b")`, opType: `vType("a", string)`,
	opEq: "eq(1, 1)", opNeq: "neq(1, 2)", opLt: "lt(1, 2)", opLe: "le(1, 1)", opGt: "gt(2, 1)", opGe: "ge(1, 1)",
	opKey: "sKeyIs(K)", opIP: "sIpIs(I)", opPrefix: `ipPrefix("10.0.0.1", "10.0.0.0/8")`, opRegion: "sRegionIs(R)",
	opTime: "timeIs(T)",
	opName: "cNameIs(N)", opID: "cIdIs(I)", opExists: "cIdExists(1)", opKind: "cKindIs(file)",
	opLength:    "cCurrLenIs(L)",
	opNewLength: "cNewLenIs(L)", opInternal: "cIsInternal()", opHasPolicy: "hasPol(1, P)",
	opContentType: `cTypeIs("t")`,
	opAtLeast:     "isAsRestrictive(read, this.read)",
	opSays:        `"c" says t(X)`, opWillsay: `"c" willsay t(X)`,
	opEach: `each in "c" says t(X) { neq(X, "a") }`, opEachWillsay: `each in "c" willsay t(X) { neq(X, "a") }`,
}

// policiesWith puts a literal into each kind of rule, and once more inside an each.
func policiesWith(literal string) map[ruleName]string {
	return map[ruleName]string{
		readRule:       "read :- " + literal + ".",
		updateRule:     "update :- " + literal + ".",
		declassifyRule: "read :- sKeyIs(\"a\").\ndeclassify :- isAsRestrictive(read, this.read) until " + literal + ".",
	}
}

// Every predicate is either supplied or refused where a policy is bound, in each kind of
// rule: a new one fails here until the table says which.
func TestEveryPredicateIsSuppliedOrRefused(t *testing.T) {
	for op := opInvalid + 1; op < operations; op++ {
		known := supplies[op]
		for rule, text := range policiesWith(useOf[op]) {
			t.Run(fmt.Sprintf("%s in %s", signatures[op].name, rule), func(t *testing.T) {
				if useOf[op] == "" || (known.by[rule] == "") == (known.missing == "") {
					t.Fatalf("say in supplies who supplies %s, or why nobody does; and in useOf how it is written",
						signatures[op].name)
				}
				if (known.missing == "") != (known.remedy == "") {
					t.Error("a refusal needs a remedy")
				}
				inside := policiesWith(`each in "list" says t(Y) { ` + useOf[op] + `, neq(Y, 1) }`)[rule]
				texts := map[string]string{"alone": text, "inside an each": inside}
				if rule == declassifyRule {
					texts["behind an exit"] = policiesWith("(cKindIs(descriptor), isAsRestrictive(read, this.read) until " +
						useOf[op] + ")")[rule]
				}
				for name, text := range texts {
					checkRefusal(t, name, text,
						"`"+signatures[op].name+"` cannot be enforced in the "+rule.String()+" rule",
						known.by[rule] == "")
				}
			})
		}
	}
}

func checkRefusal(t *testing.T, name, text, named string, refused bool) {
	t.Helper()
	template, err := CompileAccepted("p.pol", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	err = template.CheckSupplied(GrantOpen)
	var mistake *Error
	switch {
	case !refused && err != nil:
		t.Errorf("%s: %s is refused: %v", name, text, err)
	case refused && !errors.As(err, &mistake):
		t.Errorf("%s: %s is accepted", name, text)
	case refused && (!strings.Contains(mistake.Message, named) || mistake.File != "p.pol" || mistake.Line == 0 ||
		mistake.Column == 0 || mistake.Hint == ""):
		t.Errorf("%s: the refusal %q does not say %s, where it is, and what to do", name, err, named)
	}
}

// Facts have no offsets: a policy that uses one is refused, its twin without one is
// accepted.
func TestOffsetsAreRefused(t *testing.T) {
	tests := map[string]bool{
		`"c" says t(X)`:   false,
		`"c"@O says t(X)`: true,
		`"c"@7 says t(X)`: true,
		`each in "banned" says user(U) { neq(U, "eve") }`:    false,
		`each in "banned"@O says user(U) { neq(U, "eve") }`:  true,
		`each in "banned"@0..9 says user(U) { neq(U, "e") }`: true,
	}
	for literal, refused := range tests {
		for rule, text := range policiesWith(literal) {
			checkRefusal(t, literal, text, "an offset (`@`) cannot be enforced in the "+rule.String()+" rule", refused)
		}
	}
}

// Where a task is given a directory or keys as a whole, what tells one conduit or one
// connection from another is not known; elsewhere it is.
func TestGrantsWithoutADecisionWithholdValues(t *testing.T) {
	tests := []struct {
		literal string
		grant   Grant
		refused bool
	}{
		{"cNameIs(N)", GrantDirectory, true},
		{"cNameIs(N)", GrantKeys, false},
		{"cIdIs(I)", GrantDirectory, true},
		{`"list" says blocked(this)`, GrantDirectory, true},
		{`each in "list" says blocked(D) { neq(D, this) }`, GrantDirectory, true},
		{`each in "list" says blocked(D) { neq(D, this) }`, GrantOpen, false},
		{`each in "list" says blocked(D) { neq(D, this) }`, GrantKeys, false},
		{"isAsRestrictive(read, this.read)", GrantDirectory, false},
		{"sIpIs(I)", GrantKeys, true},
		{"sIpIs(I)", GrantOpen, false},
		{"sIpIs(I)", GrantDirectory, false},
		{"sRegionIs(R)", GrantKeys, false},
	}
	for _, test := range tests {
		for _, text := range policiesWith(test.literal) {
			template, err := CompileAccepted("p.pol", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := template.CheckSupplied(test.grant); (err != nil) != test.refused {
				t.Errorf("grant %d, %s: %v, want it to be refused: %v", test.grant, text, err, test.refused)
			}
		}
	}
}

// The policies of the standard library that are refused are known, and the page lists
// them.
func TestLibraryPoliciesThatAreNotLive(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{"append-only-log": true, "conduit-ids": true, "conduit-ids-plus": true}
	for _, template := range Library() {
		if err := template.CheckSupplied(GrantOpen); (err != nil) != refused[template.Name()] {
			t.Errorf("%s: %v, want it to be refused: %v", template.Name(), err, refused[template.Name()])
		}
		var row string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "| `"+template.Name()) &&
				(strings.HasPrefix(line, "| `"+template.Name()+"`") ||
					strings.HasPrefix(line, "| `"+template.Name()+"(")) {
				row = line
			}
		}
		if row == "" || strings.Contains(row, "not available live yet") != refused[template.Name()] {
			t.Errorf("docs/policies.md says of %s: %q", template.Name(), row)
		}
	}
}

// The page's table of predicates says from where each value comes, in the words of the
// table that decides.
func TestThePageSaysWhoSuppliesEachPredicate(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for op := opInvalid + 1; op < operations; op++ {
		name := strings.TrimPrefix(signatures[op].name, "each … ")
		want := supplies[op].by[readRule]
		if want == "" {
			want = "refused: " + supplies[op].missing
		}
		found := false
		for line := range strings.Lines(string(page)) {
			cells := strings.Split(line, " | ")
			found = found || len(cells) == 3 && strings.Contains(cells[0], name) && strings.HasPrefix(cells[2], want)
		}
		if !found {
			t.Errorf("docs/policies.md has no row for %s that says: %s", signatures[op].name, want)
		}
	}
}
