// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// unexpected adds a set of documents that no task is expected to read, and that friends of
// their owners may read.
const unexpected = `    - name: albums
      kind: file
      ingress: true
      paths:
        - {path: "/albums/{owner}/**", policy: {name: friends, arguments: {owner: "{owner}"}}}
    - name: queries
`

// newLearningStack is a stack with albums of bob, a friend of alice. Both live in Germany.
func newLearningStack(t *testing.T, revocation string) *stack {
	s := newStack(t)
	s.manifests["pipeline.yaml"] = strings.NewReplacer("    - name: queries\n", unexpected,
		"revocation: lazy", "revocation: "+revocation).Replace(s.manifests["pipeline.yaml"])
	s.document("/albums/bob/1.txt")
	s.document("/albums/bob/2.txt")
	s.document("/corpus/friends/bob/1.txt")
	s.document("/corpus/friends/bob/2.txt")
	s.principal("alice", "de")
	s.principal("bob", "de")
	return s
}

var aliceIsAFriend = apiFact("friends/bob", "friend", "alice")

// startLearning starts the stack with the facts that are not the bundle's.
func (s *stack) startLearning() {
	s.t.Helper()
	s.open()
	s.apply()
	s.changeFacts(api.FactChange{Add: []api.Fact{aliceIsAFriend,
		apiFact("regions", "prefix", "127.0.1.0/24", "de"), apiFact("regions", "prefix", "127.0.2.0/24", "fr")}})
	s.analyze()
	s.startWorkers()
}

// counted is the value of a metric, summed over its labels.
func (s *stack) counted(metric string) uint64 { return s.monitor.metrics.Counters()[metric] }

func (s *stack) await(metric string, value uint64) {
	s.t.Helper()
	waiting.Until(s.t, fmt.Sprintf("%s is %d", metric, value), func() bool { return s.counted(metric) == value })
}

const (
	learnedMetric  = "shai_learned_classes_total"
	foreseenMetric = "shai_background_analyses_total"
)

// reading reads a document in a session. It shows how often the monitor was asked meanwhile.
func (u *user) reading(name string) string {
	u.stack.t.Helper()
	before := u.stack.interceptions()["open"]
	answer := u.must(fmt.Sprintf("read %d", u.stack.id(name)))
	return fmt.Sprintf("%s, asked %d", answer, u.stack.interceptions()["open"]-before)
}

// natively opens a document by its place in the view, without a question.
func (u *user) natively(name string) bool {
	u.stack.t.Helper()
	id := u.stack.id(name)
	answer := u.must(fmt.Sprintf("beneath %d/%d/%d", u.stack.monitor.state().ClassOf(id), id>>10, id))
	return !strings.HasPrefix(answer, "error ")
}

func (s *stack) expect(when, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %s; want %s", when, got, want)
	}
}

// expectGrown reports if a live session has not got the directories that its set has gained, where
// it can get any.
func (s *stack) expectGrown(u *user, name string) {
	s.t.Helper()
	if want := askedWhenGrown == "asked 0"; u.natively(name) != want {
		s.t.Errorf("the session has a directory of the class: %v; want %v", !want, want)
	}
}

// A document of a class that the analysis did not foresee is asked about once. The other
// sessions of the instance, and later ones, do not ask at all; other instances do.
func TestAnAccessIsLearnt(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	alice, other := s.login("alice", "127.0.1.1"), s.login("alice", "127.0.1.2")
	s.expect("at first", alice.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, asked 1")
	s.await(learnedMetric, 1)
	s.settle()
	for _, one := range []*user{alice, other} {
		s.expect("then", one.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, "+askedWhenGrown)
		s.expect("another one of the class", one.reading("/albums/bob/2.txt"),
			"text /albums/bob/2.txt, "+askedWhenGrown)
		s.expectGrown(one, "/albums/bob/2.txt")
	}
	bob := s.login("bob", "127.0.1.3")
	s.expect("another user", bob.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, asked 1")
	s.await(learnedMetric, 2)
	s.analyze()
	other.connection.Close()
	s.awaitIdle()
	s.expect("after an analysis", s.login("alice", "127.0.1.2").reading("/albums/bob/1.txt"),
		"text /albums/bob/1.txt, asked 0")
	learnt := 0
	for _, r := range s.records() {
		if r.Kind == audit.Analysis && r.Operation == "learn" {
			learnt++
			if !r.Allowed || r.Reason != "classes gained: 1" {
				t.Errorf("recorded: %+v", r.Event)
			}
		}
	}
	if learnt != 2 {
		t.Errorf("learning was recorded %d times; want 2", learnt)
	}
}

// With learning off the monitor decides every time, as for Figure 2 of the paper.
func TestNothingIsLearnt(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.options.NoLearning = true
	s.startLearning()
	alice, abroad := s.login("alice", "127.0.1.1"), s.login("alice", "127.0.2.1")
	for range 3 {
		s.expect("not foreseen", alice.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, asked 1")
		s.expect("from an unforeseen region", abroad.reading("/corpus/friends/bob/1.txt"),
			"text /corpus/friends/bob/1.txt, asked 1")
	}
	if s.counted(learnedMetric)+s.counted(foreseenMetric) > 0 {
		t.Error("something was learnt")
	}
}

// Nothing is learnt without an analysis that keeps it true, nor of instances that later ones
// will not have, nor without bounds.
func TestWhatIsNotLearnt(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.open()
	s.apply()
	s.changeFacts(api.FactChange{Add: []api.Fact{aliceIsAFriend}})
	class := s.monitor.state().ClassOf(s.id("/albums/bob/1.txt"))
	worker := func(arguments ...string) analysis.Instance {
		return analysis.Instance{Task: "worker", Arguments: arguments}
	}
	learn := func(pipeline string, instance analysis.Instance) (learnt uint64) {
		before := s.counted(learnedMetric) + s.counted(foreseenMetric)
		s.must(s.monitor.learn(t.Context(), pipeline, []analysis.Access{{Instance: instance, Class: class}}))
		return s.counted(learnedMetric) + s.counted(foreseenMetric) - before
	}
	if learn("probe", worker("alice", "de")) > 0 {
		t.Error("something was learnt before the first analysis")
	}
	s.analyze()
	for what, instance := range map[string]analysis.Instance{
		"that nobody has seen": worker("alice", "fr"), "with too few arguments": worker("alice"),
		"of no task": {Task: "nobody"}, "that may not": worker("carol", "de"),
	} {
		if learn("probe", instance) > 0 {
			t.Errorf("something was learnt of an instance %s", what)
		}
	}
	if learn("nothing", worker("alice", "de")) > 0 || learn("probe", worker("alice", "de")) != 1 ||
		learn("probe", worker("alice", "de")) > 0 {
		t.Error("the instance did not gain one class")
	}
	l := newLearner()
	for range maxUnforeseen + 1 {
		l.add("probe", analysis.Access{Instance: worker("alice", "de")}, version{})
	}
	if kept := len(l.take()["probe"]); kept != maxUnforeseen || len(l.take()) > 0 {
		t.Errorf("%d accesses were kept; want %d", kept, maxUnforeseen)
	}
}

// What an analysis refuses is not analysed again for each session that asks, until facts or
// bundle change: the policies allow each session the access itself.
func TestRefusalsAreRemembered(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	s.monitor.stopWatch()
	s.monitor.watching.Wait()
	l, class := s.monitor.learner, s.monitor.state().ClassOf(s.id("/albums/bob/1.txt"))
	of := func(user string) analysis.Access {
		instance := analysis.Instance{Task: "worker", Arguments: []string{user, "de"}}
		return analysis.Access{Instance: instance, Class: class}
	}
	asked := func(users ...string) (kept int) {
		for _, user := range users {
			s.monitor.unforeseen("probe", of(user))
		}
		taken := l.take()["probe"]
		s.must(s.monitor.learn(t.Context(), "probe", taken))
		return len(taken)
	}
	s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}})
	for i, want := range []int{2, 1} { // bob may, and has it from then on: he would not ask
		if kept := asked("alice", "bob"); kept != want {
			t.Errorf("time %d: %d accesses were analysed, want %d", i+1, kept, want)
		}
	}
	s.changeFacts(api.FactChange{Add: []api.Fact{aliceIsAFriend}})
	if kept := asked("alice"); kept != 1 || s.counted(learnedMetric) != 2 {
		t.Errorf("after a change of facts %d accesses were analysed, and %d classes were learnt in all", kept,
			s.counted(learnedMetric))
	}
	s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}})
	asked("alice")
	s.manifests["other.yaml"] = "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: other}\n" +
		"spec: {text: \"read :- true.\"}\n"
	s.apply()
	if kept := asked("alice"); kept != 1 {
		t.Errorf("after a change of the bundle %d accesses were analysed", kept)
	}
	for range 3 {
		l.refuse("probe", s.monitor.analyses["probe"].result, []analysis.Access{of("nobody")}, version{})
	}
	if len(l.refused) != 1 {
		t.Errorf("%d refusals of another version are remembered", len(l.refused))
	}
	for i := range maxRefused + 1 {
		l.refuse("probe", s.monitor.analyses["probe"].result, []analysis.Access{of(fmt.Sprint(i))}, version{})
	}
	if len(l.refused) > maxRefused {
		t.Errorf("%d refusals are remembered", len(l.refused))
	}
}

// What is learnt is followed until it expires, also if one of the sets cannot be put in force:
// those before it are.
func TestWhatIsLearntExpires(t *testing.T) {
	s := newLearningStack(t, "lazy")
	s.startLearning()
	s.monitor.stopWatch()
	s.monitor.watching.Wait()
	select {
	case <-s.monitor.expiring:
	default:
	}
	class := s.monitor.state().ClassOf(s.id("/albums/bob/1.txt"))
	s.must(os.RemoveAll(s.monitor.view.Path()))
	instance := analysis.Instance{Task: "worker", Arguments: []string{"alice", "de"}}
	access := analysis.Access{Instance: instance, Class: class}
	if err := s.monitor.learn(t.Context(), "probe", []analysis.Access{access}); err == nil {
		t.Error("a set is in force without the directory of its class")
	}
	if len(s.monitor.expiring) == 0 {
		t.Error("nobody examines when what was learnt expires")
	}
}

// An access that was learnt follows the facts that it rests on.
func TestALearntAccessIsRevoked(t *testing.T) {
	for revocation, ends := range map[string]bool{"immediate": true, "lazy": false} {
		t.Run(revocation, func(t *testing.T) {
			s := newLearningStack(t, revocation)
			s.startLearning()
			alice := s.login("alice", "127.0.1.1")
			alice.reading("/albums/bob/1.txt")
			s.await(learnedMetric, 1)
			bob := s.login("bob", "127.0.1.3")
			s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}})
			if _, err := alice.say("mode"); (err != nil) != ends {
				t.Errorf("alice's session goes on: %v; want %v", err == nil, !ends)
			}
			alice.connection.Close()
			bob.must("mode")
			s.awaitIdle()
			s.expect("in a new session", s.login("alice", "127.0.1.1").reading("/albums/bob/1.txt"),
				"error EACCES withheld 1, asked 1")
			s.changeFacts(api.FactChange{Add: []api.Fact{aliceIsAFriend}})
		})
	}
}

// The instance of a user whom nobody expected from there is analysed when the user comes:
// the session, and later ones, get its set.
func TestAnUnforeseenInstanceIsAnalysed(t *testing.T) {
	s := newLearningStack(t, "immediate")
	s.startLearning()
	abroad := s.login("alice", "127.0.2.1")
	s.await(foreseenMetric, 1)
	s.settle()
	s.expect("of the session", abroad.reading("/corpus/friends/bob/1.txt"),
		"text /corpus/friends/bob/1.txt, "+askedWhenGrown)
	s.expectGrown(abroad, "/corpus/friends/bob/2.txt")
	later := s.login("alice", "127.0.2.2")
	if !later.natively("/corpus/friends/bob/1.txt") {
		t.Error("a later session has no directory of the class")
	}
	s.expect("not expected", abroad.reading("/albums/bob/1.txt"), "text /albums/bob/1.txt, asked 1")
	s.await(learnedMetric, 1)
	if reset := s.changeFacts(api.FactChange{Remove: []api.Fact{aliceIsAFriend}}).SessionsReset; reset != 2 {
		t.Errorf("sessions ended when the facts no longer hold: %d; want 2", reset)
	}
	if s.counted(foreseenMetric) != 1 {
		t.Error("an instance was analysed twice")
	}
}

// Learning and a change of the facts that what is learnt rests on come at the same time, again
// and again: once the change is answered, nobody reads by what was before.
func TestChangesInTheInstantOfLearning(t *testing.T) {
	const changes = 10
	for name, of := range map[string]struct {
		from     string
		analyses bool // are run meanwhile
	}{"a class": {from: "127.0.1.1"}, "an instance": {from: "127.0.2.1"}, "analyses": {"127.0.2.1", true}} {
		t.Run(name, func(t *testing.T) {
			s := newLearningStack(t, "immediate")
			s.startLearning()
			over := make(chan struct{})
			var analyses sync.WaitGroup
			if of.analyses {
				analyses.Go(func() { s.analyzeUntil(over) })
			}
			prepare := func(s *stack) func() bool { return readingAgain(s, of.from, "/albums/bob/1.txt") }
			(&changeRace{stack: s, prepare: prepare}).run(aliceIsAFriend, changes)
			close(over)
			analyses.Wait()
			if s.counted(learnedMetric) == 0 {
				t.Error("nothing was learnt: this test is about nothing")
			}
		})
	}
}

// analyzeUntil runs analyses of all instances and of active ones, by turns.
func (s *stack) analyzeUntil(over <-chan struct{}) {
	for scopes := []string{api.ScopeAll, api.ScopeActive}; ; scopes[0], scopes[1] = scopes[1], scopes[0] {
		select {
		case <-over:
			return
		default:
		}
		request := api.AnalyzeRequest{Scope: scopes[0]}
		if _, err := s.monitor.Analyze(context.Background(), request, func(api.Progress) {}); err != nil {
			s.t.Errorf("analyse: %v", err)
			return
		}
	}
}
