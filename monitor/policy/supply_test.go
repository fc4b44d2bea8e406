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
				if useOf[op] == "" || known.by[rule] == "" && known.missing == "" {
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
	checkMistake(t, name+": "+text, template.CheckSupplied(), named, refused)
}

func checkMistake(t *testing.T, what string, err error, named string, refused bool) {
	t.Helper()
	var mistake *Error
	switch {
	case !refused && err != nil:
		t.Errorf("%s is refused: %v", what, err)
	case refused && !errors.As(err, &mistake):
		t.Errorf("%s is accepted", what)
	case refused && (!strings.Contains(mistake.Message, named) || mistake.File != "p.pol" || mistake.Line == 0 ||
		mistake.Column == 0 || mistake.Hint == ""):
		t.Errorf("%s: the refusal %q does not say %s, where it is, and what to do", what, err, named)
	}
}

// Only the entries of a log have offsets: a policy that asks for another fact's is refused, or
// an each over them would hold for all. Its twin without one is accepted, and so is one about a log.
func TestOffsetsAreOfLogsOnly(t *testing.T) {
	isLog := func(conduit string) bool { return conduit == "/log" || strings.HasPrefix(conduit, "/logs/") }
	tests := []struct {
		literal string
		refused bool
	}{
		{`"c" says t(X)`, false},
		{`"c"@O says t(X)`, true},
		{`"c"@7 says t(X)`, true},
		{`each in "banned" says user(U) { neq(U, "eve") }`, false},
		{`each in "banned"@O says user(U) { neq(U, "eve") }`, true},
		{`each in "banned"@0..9 says user(U) { neq(U, "e") }`, true},
		{`"/log"@O says t(X)`, false},
		{`each in "/log"@O says user(U) { neq(U, "eve") }`, false},
		{`each in "/log"@0..9 says user(U) { neq(U, "eve") }`, false},
		{`log@O says t(X)`, false},
		{`each in log@O says user(U) { neq(U, "eve") }`, false},
		{`other@O says t(X)`, true},
		{`each in other@O says user(U) { neq(U, "eve") }`, true},
		{`each in perhaps@O says user(U) { neq(U, "eve") }`, true},
		{`each in this@O says user(U) { neq(U, "eve") }`, true},
		{`concat(C, "/", "log"), C@O says t(X)`, true},
		{`concat(C, "/", "log"), each in C@O says user(U) { neq(U, "eve") }`, true},
		{`each in "list" says t(Y) { other@O says t(Y) }`, true},
	}
	arguments := map[string]string{"log": "/log", "other": "/other", "perhaps": "/logs/{team}"}
	for _, test := range tests {
		for rule, text := range policiesWith(test.literal) {
			template, err := CompileAccepted("p.pol", []byte("policy p(log, other, perhaps) {\n"+text+"\n}"))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for _, grant := range []Grant{GrantOpen, GrantTyped, GrantKeys} {
				checkMistake(t, text, template.CheckBound(Binding{grant, arguments, isLog}),
					"an offset (`@`) cannot be enforced in the "+rule.String()+" rule", test.refused)
			}
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
		{"sIpIs(I)", GrantTypedKeys, true},
		{"sIpIs(I)", GrantTyped, false},
		{"cNameIs(N)", GrantTyped, false},
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
			if err := template.CheckBound(Binding{Grant: test.grant}); (err != nil) != test.refused {
				t.Errorf("grant %d, %s: %v, want it to be refused: %v", test.grant, text, err, test.refused)
			}
		}
	}
}

// What only a write has is supplied in update rules of typed conduits, and in exits, which are
// about the conduit that the data go to.
func TestWritesAreOfTypedConduitsOnly(t *testing.T) {
	for _, op := range []operation{opLength, opNewLength, opContentType, opWillsay, opEachWillsay} {
		for rule, text := range policiesWith(useOf[op]) {
			template, err := CompileAccepted("p.pol", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for grant, typed := range map[Grant]bool{GrantOpen: false, GrantKeys: false, GrantDirectory: false,
				GrantTyped: true, GrantTypedKeys: true} {
				refused := rule == readRule || rule == updateRule && !typed
				checkMistake(t, fmt.Sprintf("grant %d, %s", grant, text), template.CheckBound(Binding{Grant: grant}),
					"`"+signatures[op].name+"` cannot be enforced in the "+rule.String()+" rule", refused)
			}
		}
	}
}

// Without a write, or on a conduit that nobody has measured, no condition about it holds: not
// even one that would hold of an empty write or an empty file.
func TestNothingHoldsOfAnUnknownWrite(t *testing.T) {
	p := mustBind(t, `update :- true.`)
	for _, text := range []string{`cCurrLenIs(L)`, `cCurrLenIs(0)`, `cNewLenIs(L)`, `cNewLenIs(0)`, `cTypeIs(T)`,
		`cNameIs(C), C willsay t(X)`, `cNameIs(C), each in C willsay t(X) { eq(X, 1) }`,
		`each in "f" willsay t(X) { eq(X, 1) }`} {
		rule := mustBind(t, "update :- "+text+".")
		target := Conduit{Name: "f", Kind: FileConduit, Policy: p}
		decision := evaluate(rule.Update(target.Name), world(t), Environment{Target: &target})
		if decision.Allowed {
			t.Errorf("%s holds of a write that nobody knows", text)
		}
		target.Type, target.Measured = "tuples", true
		known := &Update{Facts: []Fact{{Relation: "t", Arguments: []Value{Integer(1)}, Positioned: true}}}
		decision = evaluate(rule.Update(target.Name), world(t), Environment{Target: &target, Update: known})
		if !decision.Allowed {
			t.Errorf("%s does not hold of a write that says t(1): %s", text, decision.Reason)
		}
	}
}

// The whole library can be enforced, and the page says so of each policy.
func TestLibraryIsLive(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range Library() {
		if err := template.CheckSupplied(); err != nil {
			t.Errorf("%s: %v", template.Name(), err)
		}
		typed := template.Name() == "append-only-log"
		if err := template.CheckBound(Binding{Grant: GrantOpen}); (err != nil) != typed {
			t.Errorf("%s: on a conduit without a type: %v, want it to be refused: %v", template.Name(), err, typed)
		}
		if err := template.CheckBound(Binding{Grant: GrantTyped}); err != nil {
			t.Errorf("%s: on a typed conduit: %v", template.Name(), err)
		}
		if !strings.Contains(string(page), "`"+template.Name()) {
			t.Errorf("docs/policies.md does not name %s", template.Name())
		}
	}
	if strings.Contains(string(page), "not available live yet") {
		t.Error("docs/policies.md says that a policy is not available")
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
		want := supplies[op].by[updateRule]
		found := false
		for line := range strings.Lines(string(page)) {
			cells := strings.Split(line, " | ")
			found = found || len(cells) == 3 && strings.Contains(cells[0], name) && strings.HasPrefix(cells[2], want) &&
				(!supplies[op].ofWrites || strings.Contains(cells[2], "typed"))
		}
		if !found {
			t.Errorf("docs/policies.md has no row for %s that says: %s", signatures[op].name, want)
		}
	}
}
