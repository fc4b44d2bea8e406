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
