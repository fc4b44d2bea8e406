// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"

	"shai.dev/monitor/internal/monitor/api"
)

// An explanation begins with what a person would say, and offers what one fact can mend.
func TestExplanationsSayWhyAndWhatToDo(t *testing.T) {
	m, _ := bareMonitor(t)
	for _, test := range []struct{ principal, document, sentence, remedy string }{
		{"alice", "/diary/alice/1.txt", `worker(alice, de) may read it (diary(owner: "alice"))`, ""},
		{"bob", "/diary/alice/1.txt", `worker(bob, de) may read it (diary(owner: "alice"))`, ""},
		{"carol", "/diary/alice/1.txt", `only alice, or whoever "friends/alice" lists as friend may read it (diary, owner alice); "friends/alice" does not list carol as friend`,
			"shai facts add friends/alice friend carol"},
		{"o'hara", "/diary/alice/1.txt", `only alice, or whoever "friends/alice" lists as friend may read it (diary, owner alice); "friends/alice" does not list o'hara as friend`,
			`shai facts add friends/alice friend 'o'\''hara'`},
		{"carol", "/dropbox/1.txt", "only admin may read it (dropbox); carol is not admin", ""},
	} {
		got, err := m.Explain(t.Context(), api.Question{Principal: test.principal, Region: "de",
			Conduit: test.document})
		if err != nil {
			t.Fatal(err)
		}
		if got.Sentence != test.sentence || got.Remedy != test.remedy {
			t.Errorf("%s and %s: %s\n%s; want\n%s\n%s", test.principal, test.document, got.Sentence, got.Remedy,
				test.sentence, test.remedy)
		}
	}
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{apiFact("friends/alice", "friend",
		"carol")}}); err != nil {
		t.Fatal(err)
	}
	got, err := m.Explain(t.Context(), api.Question{Principal: "carol", Region: "de", Conduit: "/diary/alice/1.txt"})
	if err != nil || !got.Allowed {
		t.Errorf("with the remedy: %+v, %v", got, err)
	}
}
