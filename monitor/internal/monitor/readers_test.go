// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/monitor/api"
)

// The list of readers is what the last analysis has found, as far as it was brought up to date.
func TestReaders(t *testing.T) {
	m, _ := bareMonitor(t)
	diary := api.ReadersRequest{Conduit: "/diary/alice/1.txt", Limit: 10}
	var problem *api.Problem
	if _, err := m.Readers(t.Context(), diary); !errors.As(err, &problem) || problem.Status != http.StatusNotFound ||
		problem.Remedy != "run shai analyze" {
		t.Errorf("before an analysis: %v", err)
	}
	analyzeBare(t, m)
	alice := api.Reader{Task: "worker", Principal: "alice", Regions: []string{"de"}}
	bob := api.Reader{Task: "worker", Principal: "bob", Regions: []string{"de"}}
	collector := api.Reader{Task: "collector"}
	check := func(conduit string, want ...api.Reader) {
		t.Helper()
		got, err := m.Readers(t.Context(), api.ReadersRequest{Conduit: conduit, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]api.Reader{}, want...), got.Readers); diff != "" || got.Total != len(want) ||
			!got.Current {
			t.Errorf("%s: %+v\n%s", conduit, got, diff)
		}
	}
	check("/diary/alice/1.txt", alice, bob)
	check("/open/1.txt", collector, alice, bob)
	check("/dropbox/1.txt")
	check("/open/new.txt", collector, alice, bob) // a task has just written it

	// A fact that is added or removed shows at once.
	carol := api.FactChange{Add: []api.Fact{
		apiFact("friends/alice", "friend", "carol"),
		apiFact("population", "home", "carol", "de"), apiFact("population", "home", "carol", "us"),
	}, Remove: []api.Fact{apiFact("friends/alice", "friend", "bob")}}
	if _, err := m.ChangeFacts(t.Context(), carol); err != nil {
		t.Fatal(err)
	}
	check("/diary/alice/1.txt", alice, api.Reader{Task: "worker", Principal: "carol", Regions: []string{"de", "us"}})

	got, err := m.Readers(t.Context(), api.ReadersRequest{Conduit: "/diary/alice/1.txt", Limit: 1})
	if err != nil || got.Total != 2 || len(got.Readers) != 1 || got.Policy != `diary(owner: "alice")` {
		t.Errorf("with a limit: %+v, %v", got, err)
	}
	if _, err := m.Readers(t.Context(), api.ReadersRequest{Conduit: "/nowhere", Limit: 1}); err == nil {
		t.Error("a conduit without a rule has readers")
	}
	if _, err := m.Readers(t.Context(), api.ReadersRequest{Conduit: "/open/1.txt", Access: "eat"}); err == nil {
		t.Error("another access has readers")
	}
}
