// SPDX-License-Identifier: BSD-2-Clause

package analysis

import "testing"

// What is written to a conduit with a type decides, whatever its policy says: no such write is validated ahead of time.
func TestWritesToTypedConduitsAreNotValidated(t *testing.T) {
	plan, c := onePolicy(t, `update :- true. `+exit, "/d/a/1")
	who, err := newSubject(plan, c.State(), Instance{Task: "indexer"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]bool{"": true, "topics": false} {
		to := newTarget(c.State(), classNamed(t, c, "/d/a/1"))
		to.conduit.Type = kind
		if got := decide(who, write, to, c.State(), now, nil).Allowed; got != want {
			t.Errorf("type %q: allowed %v", kind, got)
		}
	}
}
