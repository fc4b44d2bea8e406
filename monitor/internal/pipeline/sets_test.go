// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// A set that no analysis updates does not survive a change of facts; one that the change
// does not concern does.
func TestUnforeseenSetsAreMadeAnew(t *testing.T) {
	p := probe(t, SessionLimits{})
	p.analyze()
	find := func(user, region string) *capabilitySet {
		holds, err := p.capabilities(p.tasks["worker"], sessionOf(user, region))
		p.must(err)
		return holds
	}
	foreseen, unforeseen := find("alice", "de"), find("alice", "fr")
	if !foreseen.analyzed || unforeseen.analyzed || find("alice", "fr") != unforeseen {
		t.Fatal("the sets are not what this test is about")
	}
	p.change(nil, facts(fact("friends/carol", "friend", "dave")))
	if find("alice", "de") != foreseen || find("alice", "fr") == unforeseen {
		t.Error("the wrong sets were made anew")
	}
}

// dyingWorker goes on after it was killed, until gone is closed.
type dyingWorker struct {
	sandbox.Worker
	gone chan struct{}
}

func (dyingWorker) Kill()                   {}
func (w dyingWorker) Gone() <-chan struct{} { return w.gone }

// A change that ends a session is answered when the session can do nothing any more.
func TestAChangeWaitsForTheSessionsThatItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worker := dyingWorker{gone: make(chan struct{})}
		answered := false
		go func() {
			killAll([]*session{{worker: worker}})
			answered = true
		}()
		synctest.Wait()
		if answered {
			t.Error("the change is answered while the session goes on")
		}
		close(worker.gone)
		synctest.Wait()
		if !answered {
			t.Error("the change is never answered")
		}
	})
}

// Sets that an analysis replaces by lesser ones end their sessions like a change of facts does:
// later changes do not concern what they hold.
func TestAnAnalysisThatGivesLess(t *testing.T) {
	for _, test := range []struct {
		name, revocation string
		put              func(Sets, *capabilitySet)
		told             []string
	}{
		{"the same", revokeAtOnce, func(Sets, *capabilitySet) {}, nil},
		{"no set", revokeAtOnce, func(sets Sets, _ *capabilitySet) { delete(sets, "worker(bob, de)") },
			[]string{"forget bob de flags 1", "end 7"}},
		{"fewer documents", revokeAtOnce, func(sets Sets, less *capabilitySet) {
			less.classes = less.classes[1:]
			sets["worker(bob, de)"] = less
		}, []string{"forget bob de flags 1", "set worker(bob, de) bob de flags 3, 2 classes", "end 7"}},
		{"fewer conduits", revokeAtOnce, func(sets Sets, less *capabilitySet) {
			less.others = nil
			sets["worker(bob, de)"] = less
		}, []string{"forget bob de flags 1", "set worker(bob, de) bob de flags 1, 3 classes", "end 7"}},
		{"no set of what was not analysed", revokeAtOnce, func(sets Sets, _ *capabilitySet) {
			sets["worker(bob, de)"].analyzed = false
			delete(sets, "worker(bob, de)")
		}, []string{"forget bob de flags 0"}},
		{"no set, lazily", "lazy", func(sets Sets, _ *capabilitySet) { delete(sets, "worker(bob, de)") },
			[]string{"forget bob de flags 0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := bare(t)
			p.analyze()
			p.spec.Revocation = test.revocation
			v, to := superviseBare(t, p)
			bindBare(t, v, 7, "bob", "worker(bob, de)")
			to.Since()
			sets, less := maps.Clone(p.sets), anotherLike(p.sets["worker(bob, de)"])
			test.put(sets, less)
			p.PutSets(sets)
			expectTold(t, to, "of the sets of an analysis", test.told...)
		})
	}
}

func TestWhatASessionLosesByAChange(t *testing.T) {
	tuple := analysis.Other{Set: "profiles", Conduit: "profile:alice"}
	for _, test := range []struct {
		name string
		one  analysis.Affected
		lost bool
	}{
		{"new", analysis.Affected{After: &analysis.Capabilities{Reads: []uint32{1}}}, false},
		{"gone", analysis.Affected{Before: &analysis.Capabilities{}}, true},
		{"more documents", analysis.Affected{Gained: []uint32{2}, Before: &analysis.Capabilities{},
			After: &analysis.Capabilities{}}, false},
		{"fewer documents", analysis.Affected{Lost: []uint32{2}, Before: &analysis.Capabilities{},
			After: &analysis.Capabilities{}}, true},
		{"more tuples", analysis.Affected{Before: &analysis.Capabilities{},
			After: &analysis.Capabilities{Others: []analysis.Other{tuple}}}, false},
		{"fewer tuples", analysis.Affected{Before: &analysis.Capabilities{Others: []analysis.Other{tuple}},
			After: &analysis.Capabilities{}}, true},
		{"fewer classes to write", analysis.Affected{Before: &analysis.Capabilities{Writes: []uint32{3}},
			After: &analysis.Capabilities{}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if lost := hasLost(test.one); lost != test.lost {
				t.Errorf("lost: %v, want %v", lost, test.lost)
			}
		})
	}
}

// A task that may not do what its manifest says gets the reason in plain words.
func TestRefusedStartsSayWhy(t *testing.T) {
	p := bare(t)
	conduit, _ := p.services.conduitNamed("/diary/alice/1.txt")
	found := p.decideAhead(p.tasks["collector"].role().subject, policy.Read, conduit)
	const want = `only alice, or whoever "friends/alice" lists as friend may read it (diary, owner alice); the task may pass what it reads on to anybody [`
	if found.Allowed || !strings.HasPrefix(found.Reason, want) {
		t.Errorf("%s; want %s", found.Reason, want)
	}
}
