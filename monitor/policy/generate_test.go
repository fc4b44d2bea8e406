// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/bug"
)

// The vocabulary of random policies and states is small, so that they meet often.
var (
	people   = []string{"a", "b", "c"}
	places   = []string{"l/a", "l/b", "l/r", "p"}
	regions  = []string{"r", "s"}
	subjects = []string{"x", "y"} // conduits that policies stand on
	instants = []time.Time{noon, noon.Add(time.Hour), noon.Add(2 * time.Hour)}
)

func constant() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind of constant") {
		case 0:
			return fmt.Sprintf("%d", rapid.IntRange(1, 3).Draw(t, "number"))
		case 1:
			return rapid.SampledFrom(instants).Draw(t, "instant").Format(time.RFC3339)
		case 2:
			return fmt.Sprintf("%q", rapid.SampledFrom(regions).Draw(t, "region"))
		case 3:
			return fmt.Sprintf("%q", rapid.SampledFrom(subjects).Draw(t, "subject"))
		case 4:
			return "this"
		default:
			return fmt.Sprintf("%q", rapid.SampledFrom(people).Draw(t, "person"))
		}
	})
}

func term() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 2).Draw(t, "variable?") > 0 {
			return rapid.SampledFrom([]string{"V", "W", "X"}).Draw(t, "variable")
		}
		return constant().Draw(t, "constant")
	})
}

func place() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "named?") > 0 {
			return fmt.Sprintf("%q", rapid.SampledFrom(places).Draw(t, "place"))
		}
		return rapid.SampledFrom([]string{"V", "W", "X"}).Draw(t, "variable")
	})
}

var relationNames = []string{"eq", "neq", "lt", "le", "gt", "ge"}

var computationNames = []string{"add", "sub", "mul", "div", "rem"}

func literalText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		one, two := term().Draw(t, "one"), term().Draw(t, "two")
		switch rapid.IntRange(0, 29).Draw(t, "form") {
		case 0, 1:
			return "sKeyIs(" + one + ")"
		case 2:
			return "sRegionIs(" + one + ")"
		case 3:
			return "timeIs(" + one + ")"
		case 4, 5:
			return fmt.Sprintf("concat(%s, \"l/\", %s)", rapid.SampledFrom([]string{"V", "W", "X"}).Draw(t, "result"),
				one)
		case 6, 7, 8:
			return place().Draw(t, "place") + " says f(" + one + ")"
		case 9:
			return fmt.Sprintf("%s says g(%s, %s)", place().Draw(t, "place"), one, two)
		case 10, 11:
			return fmt.Sprintf("each in %s says f(E) { %s }", place().Draw(t, "place"),
				condition().Draw(t, "condition"))
		case 12:
			return fmt.Sprintf("each in %s says g(E, %s) { %s }", place().Draw(t, "place"),
				rapid.SampledFrom([]string{"E", "F", one}).Draw(t, "second"), condition().Draw(t, "condition"))
		case 13:
			return fmt.Sprintf("%s(%s, %s)", rapid.SampledFrom(relationNames).Draw(t, "relation"), one, two)
		case 14:
			return "cKindIs(" + rapid.SampledFrom([]string{"pipe", "connection", "descriptor", one}).Draw(t,
				"conduit kind") + ")"
		case 15:
			return fmt.Sprintf("sIpIs(X), ipPrefix(X, \"10.%d.0.0/%d\")",
				rapid.IntRange(0, 1).Draw(t, "net"), rapid.SampledFrom([]int{8, 16}).Draw(t, "bits"))
		case 16, 17:
			return fmt.Sprintf("timeIs(T), %s(T, %s)", rapid.SampledFrom(relationNames).Draw(t, "relation"),
				rapid.SampledFrom(instants).Draw(t, "instant").Format(time.RFC3339))
		case 18:
			return fmt.Sprintf("\"p\" says f(V), %s(V, %d)", rapid.SampledFrom(relationNames).Draw(t, "relation"),
				rapid.IntRange(1, 3).Draw(t, "number"))
		case 19:
			return fmt.Sprintf("vType(%s, %s)", one, rapid.SampledFrom([]string{"string", "integer", "time",
				two}).Draw(t, "type"))
		case 20:
			return "cNameIs(" + rapid.SampledFrom([]string{`"egress"`, one}).Draw(t, "conduit name") + ")"
		case 21:
			return rapid.SampledFrom([]string{"cIdIs(1)", "cIdIs(" + one + ")", "cIsInternal()"}).Draw(t, "conduit")
		case 22, 23, 24, 25, 26:
			return writeText().Draw(t, "write")
		default:
			return fmt.Sprintf("%s(%s, %s, %s)", rapid.SampledFrom(computationNames).Draw(t, "computation"),
				term().Draw(t, "result"), one, two)
		}
	})
}

// notDrawn are the predicates of which random bodies have none, with the reason.
var notDrawn = map[operation]string{
	opExists:    "random states have no conduits",
	opHasPolicy: "random states have no conduits",
	opAtLeast:   "only exits compare rules: exitText",
}

// writeText draws literals about places in logs, and about what is written.
func writeText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		offset := rapid.SampledFrom([]string{"V", "W", "1", "2", "O"}).Draw(t, "offset")
		written := rapid.SampledFrom([]string{"this", `"egress"`, `"x"`, "V"}).Draw(t, "written")
		one := term().Draw(t, "one")
		switch rapid.IntRange(0, 9).Draw(t, "form of write") {
		case 0, 1:
			return fmt.Sprintf("%s@%s says f(%s)", place().Draw(t, "place"), offset, one)
		case 2:
			at := rapid.SampledFrom([]string{"O", "1", "2"}).Draw(t, "each at")
			return fmt.Sprintf("each in %s@%s says f(E) { %s }", place().Draw(t, "place"), at,
				rapid.SampledFrom([]string{"lt(" + at + ", 2)", condition().Draw(t, "condition")}).Draw(t, "about"))
		case 3:
			return fmt.Sprintf("each in %s@%s..%s says f(E) { %s }", place().Draw(t, "place"),
				rapid.SampledFrom([]string{"0", "1"}).Draw(t, "from"), rapid.SampledFrom([]string{"2",
					"3"}).Draw(t, "to"), condition().Draw(t, "condition"))
		case 4:
			return fmt.Sprintf("%s willsay f(%s)", written, one)
		case 5:
			return fmt.Sprintf("%s@%s willsay f(%s)", written, offset, one)
		case 6, 7:
			places := rapid.SampledFrom([]string{"", "", "@1..2", "@1..3"}).Draw(t, "places")
			of := rapid.SampledFrom([]string{"f(E)", "g(F, E)", `g("a", E)`, "g(E, E)"}).Draw(t, "tuples")
			return fmt.Sprintf("each in %s%s willsay %s { %s }", written, places, of, condition().Draw(t, "condition"))
		case 8:
			return rapid.SampledFrom([]string{"cCurrLenIs(", "cNewLenIs("}).Draw(t, "length") + rapid.SampledFrom(
				[]string{one, "V", "1", "2"}).Draw(t, "bytes") + ")"
		default:
			return `cTypeIs(` + rapid.SampledFrom([]string{`"access-log"`, "V"}).Draw(t, "content") + ")"
		}
	})
}

// The properties hold for a predicate only if the generator draws it, and the oracle knows it.
func TestEveryPredicateIsDrawn(t *testing.T) {
	drawn := map[operation]bool{}
	for seed := range 2000 {
		file, err := Parse("random", []byte("read :- "+literalText().Example(seed)+"."))
		if err != nil {
			t.Fatal(err)
		}
		for _, literal := range file.Policies[0].clauses[0].body {
			switch literal.form {
			case saysForm:
				drawn[map[bool]operation{false: opSays, true: opWillsay}[literal.willsay]] = true
			case eachForm:
				drawn[map[bool]operation{false: opEach, true: opEachWillsay}[literal.willsay]] = true
			default:
				drawn[predicates[literal.name]] = true
			}
		}
	}
	for op := opInvalid + 1; op < operations; op++ {
		if because := notDrawn[op]; drawn[op] == (because != "") {
			t.Errorf("%s is drawn: %v, and notDrawn says %q: draw it in literalText (generate_test.go) and decide it "+
				"in solutions (oracle_test.go), or say in notDrawn why not", signatures[op].name, drawn[op], because)
		}
	}
}

func condition() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		other := term().Draw(t, "other")
		switch rapid.IntRange(0, 6).Draw(t, "condition") {
		case 0, 1, 2:
			return "neq(E, " + other + ")"
		case 3:
			return "neq(" + other + ", E), neq(E, \"a\")"
		case 4:
			return "concat(N, \"l/\", E), N says f(" + other + ")"
		case 5:
			return "\"p\" says f(E)"
		default:
			return fmt.Sprintf("%s(E, %s)", rapid.SampledFrom(relationNames).Draw(t, "relation"), other)
		}
	})
}

// bodyText draws a conjunction that compiles.
func bodyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		literals := rapid.SliceOfN(literalText(), 0, 4).Draw(t, "literals")
		if rapid.IntRange(0, 2).Draw(t, "mostly about a write?") == 0 {
			writes := rapid.SliceOfN(writeText(), 1, 2).Draw(t, "writes")
			literals = slices.Concat(writes, literals[:min(1, len(literals))])
		}
		for ; len(literals) > 0; literals = literals[:len(literals)-1] {
			text := strings.Join(literals, ", ")
			if _, err := CompileAccepted("random", []byte("read :- "+text+".")); err == nil {
				return text
			}
		}
		return rapid.SampledFrom([]string{"true", `sKeyIs("a")`, `sKeyIs("b"), sRegionIs("r")`}).Draw(t, "simple")
	})
}

var (
	atPlace = regexp.MustCompile(`@\S+`)
	inPlace = regexp.MustCompile(`"(l/a|l/b|l/r|p)"`)
)

// weakened draws a conjunction that says part of what body says.
func weakened(body string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		file, err := Parse("random", []byte("read :- "+body+"."))
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, literal := range file.Policies[0].clauses[0].body {
			if literal.form == predicateForm && slices.Contains(relationNames, literal.name) &&
				rapid.Bool().Draw(t, "change?") {
				literal.name = rapid.SampledFrom(relationNames).Draw(t, "other relation")
			}
			if literal.offset != nil && rapid.IntRange(0, 2).Draw(t, "another place?") == 0 {
				others := []string{"", "@1", "@2", "@O"}
				if literal.rangeEnd != nil {
					others = []string{"", "@1..2", "@1..3"}
				}
				other := rapid.SampledFrom(others).Draw(t, "other place")
				kept = append(kept, atPlace.ReplaceAllString(literal.String(), other))
			} else if literal.form == saysForm && rapid.IntRange(0, 5).Draw(t, "another conduit?") == 0 {
				kept = append(kept, inPlace.ReplaceAllString(literal.String(), `"p"`))
			} else if literal.form == eachForm && rapid.IntRange(0, 3).Draw(t, "fewer tuples?") == 0 {
				kept = append(kept, strings.Replace(literal.String(), "g(F, ", `g("a", `, 1))
			} else if literal.form == eachForm && rapid.IntRange(0, 2).Draw(t, "change?") == 0 {
				kept = append(kept, strings.Replace(literal.String(), "{", "{ "+condition().Draw(t, "more")+",", 1))
			} else if rapid.IntRange(0, 3).Draw(t, "keep?") > 0 {
				kept = append(kept, literal.String())
			}
		}
		text := strings.Join(rapid.Permutation(kept).Draw(t, "order"), ", ")
		if _, err := CompileAccepted("random", []byte("read :- "+text+".")); err != nil {
			return body
		}
		return text
	})
}

// rulePair draws two rules' bodies; often the second follows from the first.
func rulePair(t *rapid.T) (first, second []string) {
	first = rapid.SliceOfN(bodyText(), 0, 2).Draw(t, "first")
	second = rapid.SliceOfN(bodyText(), 0, 2).Draw(t, "second")
	for _, body := range first {
		if body != "true" && rapid.Bool().Draw(t, "derive?") {
			second = append(second, weakened(body).Draw(t, "weakened"))
		}
	}
	return first, second
}

func ruleText(head string, bodies []string) string {
	var text strings.Builder
	for _, body := range bodies {
		text.WriteString(head + " :- " + body + ".\n")
	}
	return text.String()
}

// exitText draws the exits of a declassify rule.
func exitText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 4).Draw(t, "exit") {
		case 0:
			return "declassify :- isAsRestrictive(read, this.read)."
		case 1:
			return "declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).\n" +
				"declassify :- isAsRestrictive(read, this.read) until " + bodyText().Draw(t, "condition") + "."
		case 2:
			return "declassify :- isAsRestrictive(read, this.read) until " + bodyText().Draw(t, "condition") +
				", isAsRestrictive(read, this.update)."
		case 3:
			return "declassify :- isAsRestrictive(read, this.read) until (cKindIs(pipe), isAsRestrictive(read, this.update) until " +
				bodyText().Draw(t, "condition") + ")."
		default:
			return "declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor)."
		}
	})
}

func randomFact() *rapid.Generator[Fact] {
	return rapid.Custom(func(t *rapid.T) Fact {
		value := func(label string) Value {
			switch rapid.IntRange(0, 5).Draw(t, label) {
			case 0:
				return Integer(int64(rapid.IntRange(1, 3).Draw(t, "number")))
			case 1:
				return String(rapid.SampledFrom(append(subjects, regions...)).Draw(t, "other"))
			default:
				return String(rapid.SampledFrom(people).Draw(t, "person"))
			}
		}
		fact := Fact{Conduit: rapid.SampledFrom(places).Draw(t, "place"), Relation: "f",
			Arguments: []Value{value("first")}}
		if rapid.IntRange(0, 3).Draw(t, "pair?") == 0 {
			fact.Relation, fact.Arguments = "g", append(fact.Arguments, value("second"))
		}
		return fact
	})
}

// placedFact draws a fact, which may be an entry of a log.
func placedFact() *rapid.Generator[Fact] {
	return rapid.Custom(func(t *rapid.T) Fact {
		fact := randomFact().Draw(t, "fact")
		if rapid.IntRange(0, 2).Draw(t, "at a place?") == 0 {
			fact.Positioned, fact.Offset = true, int64(rapid.IntRange(0, 3).Draw(t, "offset"))
		}
		return fact
	})
}

func randomFacts() *rapid.Generator[[]Fact] { return rapid.SliceOfN(placedFact(), 0, 12) }

func baseOf(facts []Fact) *FactBase {
	base := NewFactBase()
	for _, fact := range facts {
		if _, err := base.Add(fact); err != nil {
			bug.Found("%v", err)
		}
	}
	return base
}
