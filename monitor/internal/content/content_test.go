// SPDX-License-Identifier: BSD-2-Clause

package content

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

const entry = `access("bob", "/corpus/1", 2026-01-31T00:00:00Z)` + "\n"

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", policy.MaxString)
	tests := []struct {
		kind, text string
		want       string // the facts, or a part of the error
		refused    bool
	}{
		{ConduitIDs, "7\n12\n", "0: conduit(7) 2: conduit(12)", false},
		{ConduitIDs, "", "", false},
		{ConduitIDs, "4294967295\n", "0: conduit(4294967295)", false},
		{ConduitIDs, "4294967296\n", "not the number of a conduit", true},
		{ConduitIDs, "0\n", "not the number of a conduit", true},
		{ConduitIDs, "-7\n", "not the number of a conduit", true},
		{ConduitIDs, "+7\n", "not the number of a conduit", true},
		{ConduitIDs, "07\n", "line 1: it is not in canonical form, which is 7", true},
		{ConduitIDs, "7 \n", "not the number of a conduit", true},
		{ConduitIDs, "7\r\n", "not the number of a conduit", true},
		{ConduitIDs, "7\n\n", "line 2: ", true},
		{ConduitIDs, "7", "line 1: it has no end", true},
		{ConduitIDs, "7\n12", "line 2: it has no end", true},
		{ConduitIDs, "7\n\x00\n", "line 2: ", true},
		{ConduitIDs, "the text of a document\n", "not the number of a conduit", true},
		{AccessLog, entry + entry, `0: access("bob", "/corpus/1", 2026-01-31T00:00:00Z) ` +
			`49: access("bob", "/corpus/1", 2026-01-31T00:00:00Z)`, false},
		{AccessLog, entry[:20], "it has no end", true},
		{AccessLog, `access("bob", "/corpus/1", 2026-01-31T00:00:00+00:00)` + "\n", "canonical form", true},
		{AccessLog, `access("bob", "/corpus/1", 2026-01-31T01:00:00+01:00)` + "\n", "canonical form", true},
		{AccessLog, `access("bob", "/corpus/1", 2026-01-31T00:00:00.000Z)` + "\n", "canonical form", true},
		{AccessLog, `access("bob", "/corpus/1", 2500-01-31T00:00:00Z)` + "\n", "canonical form", true},
		{AccessLog, `access("bob", "/corpus/1", 17)` + "\n", "value 3 of access is 17; expected a time", true},
		{AccessLog, `access("bob", "/corpus/1")` + "\n", "access has 2 values; expected 3", true},
		{AccessLog, `access("bob", "/corpus/1", 2026-01-31T00:00:00Z, "more")` + "\n", "access has 4 values", true},
		{AccessLog, `excess("bob", "/corpus/1", 2026-01-31T00:00:00Z)` + "\n", "it says excess", true},
		{AccessLog, `access("bob","/corpus/1",2026-01-31T00:00:00Z)` + "\n", "a comma, a space and a value", true},
		{AccessLog, ` ` + entry, "not of the form", true},
		{AccessLog, strings.TrimSuffix(entry, "\n") + " \n", "closing parenthesis", true},
		{Topics, `topic("news")` + "\n", `0: topic("news")`, false},
		{Topics, `topic("a\nb")` + "\n", `0: topic("a\nb")`, false},
		{Topics, "topic(\"\\u00e4\")\n", "canonical form", true},
		{Topics, "topic(\"ä\")\n", `0: topic("ä")`, false},
		{Topics, `topic("\xff")` + "\n", "not UTF-8", true},
		{Topics, "topic(\"\xff\")\n", "not UTF-8", true},
		{Topics, `topic("\x00")` + "\n", "contains NUL", true},
		{Topics, "topic(\"\x00\")\n", "", true},
		{Topics, `topic("open` + "\n", "closing parenthesis", true},
		{Topics, `topic("open)` + "\n", "not closed", true},
		{Topics, "topic(`news`)\n", "", true},
		{Topics, "topic('n')\n", "", true},
		{Topics, `topic("` + long + `")` + "\n", `0: topic("` + long + `")`, false},
		{Topics, `topic("` + long + `x")` + "\n", "at most 4096", true},
		{Topics, `topic("` + strings.Repeat("x", MaxLine) + `")` + "\n", "longer than 8191 bytes", true},
		{Topics, strings.Repeat("x", 1<<20), "longer than 8191 bytes", true},
		{Tuples, "f()\nage(\"bob\", 17, -3)\n", `0: f() 4: age("bob", 17, -3)`, false},
		{Tuples, "age(017)\n", "canonical form", true},
		{Tuples, "age(-0)\n", "canonical form", true},
		{Tuples, "age(9223372036854775808)\n", "no whole number of 64 bits", true},
		{Tuples, "Age(1)\n", "not of the form", true},
		{Tuples, "age(X)\n", "no text in quotes", true},
		{Tuples, "age(1, )\n", "a value are expected", true},
		{Tuples, "age(, 1)\n", "value 1", true},
		{Tuples, "f(" + strings.Repeat("1, ", policy.MaxArguments) + "1)\n", "more than 16 values", true},
		{Tuples, strings.Repeat("f", 65) + "(1)\n", "not of the form", true},
		{Tuples, "# a comment\n", "not of the form", true},
	}
	for _, test := range tests {
		kind, err := Find(test.kind)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := kind.Parse([]byte(test.text), 0)
		switch {
		case test.refused && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s %.80q: %v, want an error with %q", test.kind, test.text, err, test.want)
		case !test.refused && err != nil:
			t.Errorf("%s %.80q: %v", test.kind, test.text, err)
		case !test.refused && shown(facts) != test.want:
			t.Errorf("%s %.80q: %s, want %s", test.kind, test.text, shown(facts), test.want)
		}
	}
}

func shown(facts []policy.Fact) string {
	var list []string
	for _, fact := range facts {
		list = append(list, policy.Integer(fact.Offset).String()+": "+fact.Relation+
			policy.NewTuple(fact.Arguments...).String())
	}
	return strings.Join(list, " ")
}

func TestUnknownType(t *testing.T) {
	t.Parallel()
	_, err := Find("csv")
	if !errors.Is(err, ErrUnknownType) || !strings.Contains(err.Error(), "access-log, conduit-ids, topics, tuples") {
		t.Errorf("%v does not name the types", err)
	}
}

// Of a log whose last write was interrupted anywhere, exactly the whole lines stay.
func TestWholeLinesStay(t *testing.T) {
	t.Parallel()
	log, err := Find(AccessLog)
	if err != nil {
		t.Fatal(err)
	}
	text := entry + entry
	for cut := range len(text) + 1 {
		facts, length := log.Whole([]byte(text[:cut]), 100)
		whole := cut / len(entry)
		if int(length) != whole*len(entry) || len(facts) != whole {
			t.Errorf("cut at %d: %d facts in %d bytes", cut, len(facts), length)
		}
		for i, fact := range facts {
			if fact.Offset != int64(100+i*len(entry)) {
				t.Errorf("cut at %d: fact %d is at %d", cut, i, fact.Offset)
			}
		}
	}
	// What a crash leaves of blocks that were not written.
	if facts, length := log.Whole([]byte(entry+strings.Repeat("\x00", 4096)), 0); len(facts) != 1 ||
		int(length) != len(entry) {
		t.Errorf("before zeros: %d facts in %d bytes", len(facts), length)
	}
}

// What is accepted says nothing but its bytes: written again, it is the same text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"7\n", entry, `topic("a\"\\")` + "\n", "f()\n", "f(1, \"\", 1970-01-01T00:00:00Z)\n",
		"topic(\"a\x00\")\n", "f(\"\u2028\")\n", "f(00)\n", "\n", "("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range Names() {
			kind, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := kind.Parse([]byte(text), 5)
			if err != nil {
				continue
			}
			var again strings.Builder
			for _, fact := range facts {
				if fact.Offset != int64(5+again.Len()) || !fact.Positioned {
					t.Fatalf("%s %q: a fact is at %d", name, text, fact.Offset)
				}
				again.WriteString(kind.Line(fact))
			}
			if difference := cmp.Diff(text, again.String()); difference != "" {
				t.Fatalf("%s: %s", name, difference)
			}
		}
	})
}
