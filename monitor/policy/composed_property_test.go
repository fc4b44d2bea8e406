// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A random policy of a set, each of which includes earlier ones. Its clauses and the arguments of its
// includes have "<0>", "<1>" in the places of its parameters.
type including struct {
	name       string
	parameters []string
	clauses    []string
	includes   []inclusion
}

type inclusion struct {
	of        *including
	arguments []string
}

// Names that are words of the language or variables elsewhere, and constants that look like syntax:
// what is put in place has to keep its meaning. The name output is left out: as a parameter, it hides
// the kind of this name.
var (
	parameterNames = []string{
		"owner", "a", "friend", "location", "k", "name", "until-x", "concat", "includes", "key", "log",
	}
	constantTexts = []string{`"alice"`, `"a\"b\\"`, `"{x}"`, `"K"`, `"output"`, `"//#c"`, `"\n"`, `"é"`}
	clauseTexts   = []string{
		`read :- sKeyIs(%s).`, `read :- sKeyIs(K), %s says friend(K, %s).`, `update :- sRegionIs(%s), sKeyIs(%s).`,
		`read :- sKeyIs(K), concat(F, %s, K), F says owner(%s, _X).`, `update :- cNameIs(%s).`,
		`read :- each in %s says u(V, %s) { neq(V, %s), sKeyIs(V) }.`, `read :- %s says t(this, %s, _).`,
		`declassify :- isAsRestrictive(read, this.read) until cKindIs(output).`,
		`declassify :- isAsRestrictive(read, this.read) until cKindIs(file), sKeyIs(%s).`,
	}
)

// term draws the place of a parameter, or a constant.
func (p *including) term(t *rapid.T) string {
	if len(p.parameters) > 0 && rapid.Bool().Draw(t, "parameter") {
		return fmt.Sprintf("<%d>", rapid.IntRange(0, len(p.parameters)-1).Draw(t, "place"))
	}
	return rapid.SampledFrom(constantTexts).Draw(t, "constant")
}

func drawIncluding(t *rapid.T, name string, earlier []*including) *including {
	p := &including{name: name}
	p.parameters = rapid.SliceOfNDistinct(rapid.SampledFrom(parameterNames), 0, 3, rapid.ID).Draw(t, "parameters")
	for range rapid.IntRange(1, 3).Draw(t, "clauses") {
		clause := rapid.SampledFrom(clauseTexts).Draw(t, "clause")
		for strings.Contains(clause, "%s") {
			clause = strings.Replace(clause, "%s", p.term(t), 1)
		}
		p.clauses = append(p.clauses, clause)
	}
	for range min(len(earlier), rapid.IntRange(1, 2).Draw(t, "includes")) {
		one := inclusion{of: rapid.SampledFrom(earlier).Draw(t, "included")}
		for range one.of.parameters {
			one.arguments = append(one.arguments, p.term(t))
		}
		p.includes = append(p.includes, one)
	}
	return p
}

// withArguments writes values into the places of parameters.
func withArguments(text string, values []string) string {
	var pairs []string
	for i, value := range values {
		pairs = append(pairs, fmt.Sprintf("<%d>", i), value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func headOf(name string, arguments []string) string {
	if len(arguments) == 0 {
		return name
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// text writes the policy with its includes.
func (p *including) text() string {
	var included []string
	for _, one := range p.includes {
		included = append(included, withArguments(headOf(one.of.name, one.arguments), p.parameters))
	}
	head := "policy " + headOf(p.name, p.parameters)
	if len(included) > 0 {
		head += " includes " + strings.Join(included, ", ")
	}
	return head + " {\n" + withArguments(strings.Join(p.clauses, "\n"), p.parameters) + "\n}\n"
}

// written lists the clauses with those of all includes, for values of the parameters.
func (p *including) written(values []string) (clauses []string) {
	for _, clause := range p.clauses {
		clauses = append(clauses, withArguments(clause, values))
	}
	for _, one := range p.includes {
		var arguments []string
		for _, argument := range one.arguments {
			arguments = append(arguments, withArguments(argument, values))
		}
		clauses = append(clauses, one.of.written(arguments)...)
	}
	return clauses
}

// A policy means what its clauses and those of all that it includes mean, written out with other names
// of parameters; and so does its text after the includes were replaced.
func TestIncludesMeanTheClausesWrittenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*including
		var set strings.Builder
		for i := range rapid.IntRange(2, 5).Draw(t, "policies") {
			p := drawIncluding(t, fmt.Sprintf("p%d", i), all)
			all = append(all, p)
			set.WriteString(p.text())
		}
		last := all[len(all)-1]
		names := []string{"first", "second", "third"}[:len(last.parameters)]
		flat := "policy " + headOf(last.name, names) + " {\n" + strings.Join(last.written(names), "\n") + "\n}\n"
		file, err := Parse("set.pol", []byte(set.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, &set)
		}
		templates, err := CompileFiles(file)
		if err != nil {
			t.Fatalf("%v\n%s", err, &set)
		}
		composed := templates[len(templates)-1]
		for _, text := range []string{flat, composed.Text()} {
			want, err := CompileText("flat.pol", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, &set, text)
			}
			values := []string{"alice", `b"x`, "output"}[:len(names)]
			got, err := composed.bindValues(values...)
			if err != nil {
				t.Fatal(err)
			}
			expected, err := want.bindValues(values...)
			if err != nil {
				t.Fatal(err)
			}
			if got.ID() != expected.ID() {
				t.Fatalf("these differ:\n%s\n%s", &set, text)
			}
		}
	})
}
