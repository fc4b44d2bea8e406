// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"testing"

	"shai.dev/monitor/policy"
)

// What rests on an entry of a log at some place, or on there being no other, ends when the log is another one.
func TestEntriesOfALogAtPlaces(t *testing.T) {
	by := func(user string, offset int64) []policy.Fact {
		return []policy.Fact{{Conduit: "/log", Relation: "access", Positioned: true, Offset: offset,
			Arguments: []policy.Value{policy.String(user), policy.String("/d/a/1"), policy.Time(now)}}}
	}
	entry := by("a", 40)
	for text, step := range map[string]struct{ remove, add []policy.Fact }{
		`read :- sKeyIs("a"), "/log"@O says access("a", _, _), ge(O, 40).`:             {remove: entry},
		`read :- sKeyIs("a"), each in "/log"@_ says access(D, _X, _T) { eq(D, "a") }.`: {add: by("b", 80)},
	} {
		plan, c := onePolicy(t, text+"\n"+exit, "/d/a/1")
		if _, err := addFacts(c, entry...); err != nil {
			t.Fatal(err)
		}
		r := run(t, plan, c)
		before := canonical(r)
		change, err := c.AtOnce().ChangeFacts(step.remove, step.add)
		r, _ = follow(t, r, change, err)
		if full := canonical(run(t, plan, c)); canonical(r) != full || full == before {
			t.Errorf("%s\nfollowed\n%s\nfull run\n%s\nbefore\n%s", text, canonical(r), full, before)
		}
	}
}
