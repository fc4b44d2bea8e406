// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func composed(t *testing.T, texts ...string) ([]*Template, error) {
	t.Helper()
	var files []*File
	for i, text := range texts {
		file, err := Parse(fmt.Sprintf("%c.pol", 'a'+i), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return CompileFiles(files...)
}

const europe = `policy europe(region) { read :- sRegionIs(region). declassify :- isAsRestrictive(read, this.read) until cKindIs(output). }`

// A composed policy is the same as one that says all by itself, however it was composed.
func TestComposedPoliciesAreTheirClauses(t *testing.T) {
	flat := mustCompile(t, `policy flat(owner, output) {
		read :- sKeyIs(owner).
		read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
		read :- sRegionIs("de").
		update :- sKeyIs(owner).
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
		declassify :- isAsRestrictive(read, this.read) until cKindIs("output"), sKeyIs(output).
		declassify :- isAsRestrictive(read, this.read) until cKindIs("output").
	}`)
	rest := ` { declassify :- isAsRestrictive(read, this.read) until cKindIs("output"), sKeyIs(output). }`
	ways := [][]string{
		{`policy it(owner, output) includes library/friends(owner), europe("de")` + rest, europe},
		{europe, `policy it(owner, output) includes europe("de"), middle(owner)` + rest,
			`policy middle(who) includes library/private(who), library/friends(who) { }`},
	}
	want, err := flat.bindValues("alice", "bob")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		templates, err := composed(t, way...)
		if err != nil {
			t.Errorf("%v: %v", way, err)
			continue
		}
		for _, template := range templates {
			if template.Name() != "it" {
				continue
			}
			got, err := template.bindValues("alice", "bob")
			if err != nil {
				t.Fatal(err)
			}
			if got.ID() != want.ID() {
				t.Errorf("%v: composed it is\n%s", way, template.Text())
			}
			again, err := CompileText("again", []byte(template.Text()))
			if err != nil {
				t.Fatalf("the text of a composed policy does not compile: %v\n%s", err, template.Text())
			}
			if p, err := again.bindValues("alice", "bob"); err != nil || p.ID() != want.ID() {
				t.Errorf("the text of a composed policy means another one:\n%s", template.Text())
			}
		}
	}
}

// Every mistake is reported at once, each with its place.
func TestMistakesOfIncludes(t *testing.T) {
	tests := []struct {
		texts []string
		want  string
	}{
		{[]string{`policy a includes b { } policy b includes c { }`, `policy c includes a { }`},
			`a.pol:1:19: policy b, which it includes, has errors; correct policy b first
a.pol:1:43: policy c, which it includes, has errors; correct policy c first
b.pol:1:19: policy c includes itself: c includes a includes b includes c; remove one of these includes`},
		{[]string{`policy a includes a { }`}, `a.pol:1:19: policy a includes itself: a includes a; remove one of these includes`},
		{[]string{`policy a includes friends("x"), library/privat("y"), q { }`},
			`a.pol:1:19: there is no policy friends to include; did you mean library/friends?
a.pol:1:33: there is no policy library/privat to include; did you mean library/private?
a.pol:1:54: there is no policy q to include; declare it in the same files, or include one of the standard library, such as library/friends(owner)`},
		{[]string{`policy a(owner, end: time) includes library/friends(), library/expiry(owner), library/expiry(ende), library/friends(K), library/friends(7) { }`},
			`a.pol:1:37: library/friends takes (owner), and gets 0 arguments; give it library/friends(owner)
a.pol:1:71: parameter end of library/expiry is a time, and owner is a string; give it a value of this type
a.pol:1:94: policy a has no parameter ende; did you mean end?
a.pol:1:117: K cannot be the argument of an include; give a parameter of this policy, a text, a number or a time
a.pol:1:137: parameter owner of library/friends is a string, and 7 is an integer; give it a value of this type`},
		{[]string{`policy a includes b { }`, `policy b { }`, `policy b { }`},
			`a.pol:1:19: policy b is declared in b.pol and in c.pol; rename one of them`},
		{[]string{`policy a includes b { }`, `policy b { read :- skeyIs("a"). }`},
			"a.pol:1:19: policy b, which it includes, has errors; correct policy b first\n" +
				"b.pol:1:20: unknown predicate `skeyIs`; did you mean sKeyIs?"},
		{[]string{`policy a includes library/private("x") { declassify :- isAsRestrictive(read, this.update). }`},
			"a.pol:1:19: alternative declassify clauses restrict to different rules; write one clause, or restrict every alternative to the same rule, once"},
	}
	for _, test := range tests {
		_, err := composed(t, test.texts...)
		if err == nil || err.Error() != test.want {
			t.Errorf("%v\n got %v\nwant %s", test.texts, err, test.want)
		}
	}
}

func TestNamesOfTheLibraryAreItsOwn(t *testing.T) {
	_, err := Parse("a.pol", []byte(`policy library/mine { }`))
	if err == nil || !strings.Contains(err.Error(), "policies called library/… are those of the standard library") {
		t.Errorf("a policy is declared as one of the library: %v", err)
	}
}

// What is included twice is reported, and counts once.
func TestDiamonds(t *testing.T) {
	file, err := Parse("a.pol", []byte(`policy a(o) includes b(o), c(o) { }
policy b(o) includes library/private(o) { }
policy c(o) includes library/private(o), library/private("x") { }`))
	if err != nil {
		t.Fatal(err)
	}
	want := `warning included-twice 1:28-1:29 library/private(o) is included twice: by b(o) and by c(o); include it once`
	if got := shown(Lint(Surroundings{}, file)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Few lines cannot become many clauses.
func TestIncludesAreLimited(t *testing.T) {
	var text strings.Builder
	text.WriteString("policy p0 { read :- true. read :- sKeyIs(\"a\"). }\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&text, "policy p%d includes p%d, p%d { }\n", i, i-1, i-1)
	}
	_, err := composed(t, text.String())
	if !errors.Is(err, ErrTooManyClauses) {
		t.Errorf("got %v, want %v", err, ErrTooManyClauses)
	}
	text.Reset()
	text.WriteString("policy p0 { }\n")
	for i := 1; i < 200; i++ {
		fmt.Fprintf(&text, "policy p%d includes p%d, p%d { }\n", i, i-1, i-1)
	}
	file, err := Parse("a.pol", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	Lint(Surroundings{}, file) // ends soon
	text.Reset()               // what is short by itself is long with its argument in each place
	fmt.Fprintf(&text, "policy p0(owner) { read :- sKeyIs(owner)%s. }\n", strings.Repeat(", sKeyIs(owner)", 60))
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&text, "policy p%d includes p0(%q) { }\n", i, strings.Repeat("a", MaxString))
	}
	if _, err = composed(t, text.String()); !errors.Is(err, ErrTooMuchIncluded) {
		t.Errorf("got %v, want %v", err, ErrTooMuchIncluded)
	}
	_, err = Parse("a.pol", []byte("policy a includes b"+strings.Repeat(", b", MaxIncludes)+" { }"))
	if !errors.Is(err, ErrTooManyIncludes) {
		t.Errorf("got %v, want %v", err, ErrTooManyIncludes)
	}
}
