// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

func bareFact(conduit, says string, tuple ...string) api.Fact {
	values := make([]policy.Value, len(tuple))
	for i, text := range tuple {
		values[i] = policy.String(text)
	}
	return api.Fact{Conduit: conduit, Says: says, Tuple: policy.NewTuple(values...)}
}

var bobIsAFriend = policy.Pattern{Conduit: "friends/alice", Relation: "friend",
	Arguments: []policy.Value{policy.String("bob")}}

// If the analysis of one pipeline cannot be updated, the other pipelines must still
// follow the change. The change is in force, so it is no error.
func TestOnePipelinesFailureDoesNotHideAChangeFromAnother(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	same := *m.analyses["bare"]
	m.setAnalysis("ahead", &same)
	m.pipelines["ahead"] = p
	t.Cleanup(func() { delete(m.pipelines, "ahead") })
	// The capability set of the first of them cannot be prepared.
	m.services.Backend = &failingOnce{Backend: m.services.Backend}
	bob := []api.Fact{bareFact("friends/alice", "friend", "bob")}
	done, err := m.ChangeFacts(context.Background(), api.FactChange{Remove: bob})
	if err != nil || done.Removed != 1 || m.state().Has(bobIsAFriend) {
		t.Errorf("the fact is removed, and the answer is %+v, %v", done, err)
	}
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "prepare the directories of worker(bob, de)") {
		t.Errorf("the failure is not reported: %q", done.Warnings)
	}
	if !m.analyses["bare"].result.Current(m.state()) {
		t.Error("the other pipeline has not heard of the change")
	}
}

// failingOnce prepares no directories the first time.
type failingOnce struct {
	sandbox.Backend
	failed bool
}

func (b *failingOnce) PrepareNative(directories []string) (sandbox.Native, error) {
	if !b.failed {
		b.failed = true
		return nil, errors.New("too many open files")
	}
	return b.Backend.PrepareNative(directories)
}

// An analysis from before the pipeline was made again names tasks that may no longer
// exist.
func TestAnAnalysisOfAnEarlierPlanIsNotFollowed(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	supervisor := superviseBare(t, m).Supervisor()
	earlier := *m.analyses["bare"]
	plan := *earlier.plan
	earlier.plan = &plan
	m.setAnalysis("bare", &earlier)
	if _, err := m.ChangeFacts(context.Background(),
		api.FactChange{Remove: []api.Fact{bareFact("friends/alice", "friend", "bob")}}); err != nil {
		t.Fatal(err)
	}
	for _, instance := range []string{"worker(alice, de)", "worker(bob, de)"} {
		if _, inForce := supervisor.Set(instance); inForce || m.analyses["bare"].result != nil {
			t.Errorf("the capability set of %s under the earlier plan is still in force", instance)
		}
	}
}

// A fact that contradicts what a FactSource declares about its relation is refused, and the others of
// the change with it.
func TestFactsThatContradictADeclaration(t *testing.T) {
	m, _ := bareMonitor(t)
	applyBare(t, m, "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: circles}\n"+
		"spec: {inline: [], relations: [{name: circle, arguments: [{name: who}]}]}\n")
	_, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{bareFact("c", "circle", "bob"),
		bareFact("c", "circle", "bob", "carol")}})
	if err == nil || !strings.Contains(err.Error(), `the tuple ("bob", "carol") has 2 values; FactSource circles declares circle(who: string)`) {
		t.Fatalf("a fact that contradicts its declaration: %v", err)
	}
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{bareFact("c", "circle", "bob"),
		bareFact("c", "other", "bob", "carol")}}); err != nil {
		t.Errorf("facts as declared: %v", err)
	}
}

// What the monitor cannot use has no effect, or the opposite of what was meant, so it is refused as in manifests: also
// if only facts that are in force contradict it.
func TestFactsThatTheMonitorCannotUse(t *testing.T) {
	m, _ := bareMonitor(t)
	key, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	add := func(facts ...api.Fact) error {
		_, err := m.ChangeFacts(t.Context(), api.FactChange{Add: facts})
		return err
	}
	german, zoes := bareFact("regions", "prefix", "10.0.0.0/8", "de"), bareFact("population", "key", "zoe", key)
	if err := add(german, zoes); err != nil {
		t.Fatal(err)
	}
	before := m.state().Facts()
	for _, wrong := range []struct {
		fact api.Fact
		want string
	}{
		{bareFact("friends/alice", "Bad Name", "bob"), `"Bad Name" is no name of a relation`},
		{bareFact("regions", "prefix", "10.0.0.0", "de"), `"regions" says prefix: "10.0.0.0" is no network`},
		{bareFact("regions", "prefix", "192.0.2.0/24"), `"regions" says prefix: expected a network and its region`},
		{bareFact("regions", "prefix", "::ffff:10.0.0.0/104", "us"), `network 10.0.0.0/8 is in region "de", too`},
		{bareFact("population", "key", "yan", "zz"), `"population" says key: public key "zz" is not an Ed25519 key`},
		{bareFact("population", "key", "zoe", other), `"zoe" has another key, too`},
	} {
		err := add(bareFact("friends/alice", "friend", "zoe"), wrong.fact)
		var problem *api.Problem
		if !errors.As(err, &problem) || !strings.Contains(problem.Detail, wrong.want) || problem.Remedy == "" {
			t.Errorf("%v: %v, want %s", wrong.fact, err, wrong.want)
		}
	}
	if after := m.state().Facts(); after != before {
		t.Errorf("%d facts, %d before what was refused", after, before)
	}
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{
		Remove: []api.Fact{german, zoes},
		Add: []api.Fact{
			bareFact("regions", "prefix", "10.0.0.0/8", "us"), bareFact("population", "key", "zoe", other)},
	}); err != nil {
		t.Errorf("facts in the place of others: %v", err)
	}
}

// A relation that no source declares is probably misspelt, but may be one that only requests state.
func TestUndeclaredFacts(t *testing.T) {
	m, _ := bareMonitor(t)
	friend := "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: circles}\n" +
		"spec: {inline: [], relations: [{name: circle, conduits: ['circles/{user}'], arguments: [{name: who}]}]}\n"
	applyBare(t, m, friend)
	_, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{bareFact("circle/bob", "circle", "carol")}})
	if err == nil || !strings.Contains(err.Error(),
		`"circle/bob" says circle: FactSource circles declares other conduits for relation circle; add this one to`) {
		t.Errorf("a fact of another conduit than declared: %v", err)
	}
	for relation, warnings := range map[string]int{"circle": 0, "circel": 1} {
		done, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{
			bareFact("circles/bob", relation, "carol"), bareFact("regions", "prefix", "192.0.2.0/24", "de")}})
		if err != nil || len(done.Warnings) != warnings ||
			warnings > 0 && !strings.Contains(done.Warnings[0], "no FactSource declares relation circel; if you mean it, declare") {
			t.Errorf("%s: %q, %v", relation, done.Warnings, err)
		}
	}
}
