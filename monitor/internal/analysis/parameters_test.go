// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"testing"
	"time"

	"shai.dev/monitor/policy"
)

// said are facts of one relation about users.
type said map[string][]policy.Value

func (s said) Has(p policy.Pattern) (found bool) {
	s.Lookup(p, func(policy.Fact) bool { found = true; return false })
	return found
}

func (s said) Lookup(p policy.Pattern, yield func(policy.Fact) bool) {
	user := p.Arguments[0]
	for _, value := range s[user.Text()] {
		if !yield(policy.Fact{Conduit: p.Conduit, Relation: p.Relation, Arguments: []policy.Value{user, value}}) {
			return
		}
	}
}

var shiftStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func working() *Plan {
	return &Plan{
		Tasks: []Task{{Name: "worker", Parameters: []string{"user", "role", "shift", "day"}}},
		Declared: []Parameter{
			{Name: "role", Conduit: "employees", Says: "role"},
			{Name: "shift", Start: shiftStart, Every: 8 * time.Hour},
			{Name: "day", Start: shiftStart, Every: 24 * time.Hour},
		},
	}
}

func TestDerive(t *testing.T) {
	facts := said{
		"alice": {policy.String("editor")}, "bob": nil, "carol": {policy.String("editor"), policy.String("chief")},
		"dave": {policy.Integer(3)}, "erin": {policy.String("")}, "frank": {policy.String("x"), policy.String("x")},
		"grace": {policy.String("a\x00b")}, "heidi": {policy.String("a\xff")},
	}
	at := shiftStart.Add(33*time.Hour + 59*time.Minute)
	for _, test := range []struct {
		user       string
		now        time.Time
		want, fail string
	}{
		{"alice", at, "worker(alice, editor, 2026-01-02T08:00:00Z, 2026-01-02T00:00:00Z)", ""},
		{"alice", at.In(time.FixedZone("", 3600)), "worker(alice, editor, 2026-01-02T08:00:00Z, 2026-01-02T00:00:00Z)", ""},
		{"alice", shiftStart, "worker(alice, editor, 2026-01-01T00:00:00Z, 2026-01-01T00:00:00Z)", ""},
		{"alice", shiftStart.Add(-1), "", "parameter shift has no value before its first window begins at 2026-01-01T00:00:00Z; " +
			"connect again then, or set an earlier start in the pipeline"},
		{"bob", at, "", `parameter role has no value: no fact "employees" says role("bob", V); add the fact`},
		{"carol", at, "", `parameter role has several values: more than one fact "employees" says role("carol", V); remove all but one`},
		{"dave", at, "worker(dave, 3, 2026-01-02T08:00:00Z, 2026-01-02T00:00:00Z)", ""},
		{"erin", at, "", `parameter role has an empty value by the fact "employees" says role("erin", V); correct the fact`},
		{"grace", at, "", `parameter role has a value with a NUL, or one that is not UTF-8, by the fact ` +
			`"employees" says role("grace", V); correct the fact`},
		{"heidi", at, "", `parameter role has a value with a NUL, or one that is not UTF-8, by the fact ` +
			`"employees" says role("heidi", V); correct the fact`},
		{"frank", at, "worker(frank, x, 2026-01-02T08:00:00Z, 2026-01-02T00:00:00Z)", ""},
	} {
		values, err := working().Derive("worker", test.user, "", facts, test.now)
		got, fail := "", ""
		if err != nil {
			fail = err.Error()
		} else {
			got = working().task("worker").instanceOf(values).Name()
		}
		if got != test.want || fail != test.fail {
			t.Errorf("%s at %v: %s, %q", test.user, test.now, got, fail)
		}
	}
}

// The windows of an instance end with the first of them, and the next begins then.
func TestWindows(t *testing.T) {
	plan := working()
	for _, test := range []struct{ passed, ends time.Duration }{
		{0, 8 * time.Hour}, {8*time.Hour - 1, 8 * time.Hour}, {8 * time.Hour, 16 * time.Hour},
		{23 * time.Hour, 24 * time.Hour},
	} {
		now := shiftStart.Add(test.passed)
		alice, facts := Instance{"worker", []string{"alice", "", "", ""}}, said{"alice": {policy.String("editor")}}
		list := plan.complete(alice, facts, now)
		if len(list) != 2 {
			t.Fatalf("after %v: %v", test.passed, list)
		}
		ends, _ := plan.Ends(list[0])
		next, _ := plan.NextWindow(now)
		after, err := plan.Derive("worker", "alice", "", facts, ends)
		if err != nil || !ends.Equal(shiftStart.Add(test.ends)) || !next.Equal(ends) ||
			list[1].compare(plan.task("worker").instanceOf(after)) != 0 {
			t.Errorf("after %v: ends at %v, next window at %v, then %v, %v", test.passed, ends, next, list[1], err)
		}
	}
}
