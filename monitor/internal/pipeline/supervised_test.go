// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// superviseBare begins the supervision of the worker of pipelinetest.Bare's pipeline.
func superviseBare(t *testing.T, p *fixture) (*supervised, *pipelinetest.Supervisor) {
	t.Helper()
	v := newSupervised(p.tasks["worker"])
	to := &pipelinetest.Supervisor{Sessions: v}
	if err := v.Begin(pipelinetest.NewTask("worker", 0), to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.finish)
	return v, to
}

func expectTold(t *testing.T, to *pipelinetest.Supervisor, when string, want ...string) {
	t.Helper()
	if got := to.Since(); !slices.Equal(got, want) {
		t.Errorf("%s, the supervisor was told\n%q\nwant\n%q", when, got, want)
	}
}

// A supervisor is told everything before sessions begin, and every change afterwards.
func TestSupervisorsAreToldChanges(t *testing.T) {
	p := bare(t)
	p.analyze()
	_, to := superviseBare(t, p)
	told := to.Since()
	sets := slices.DeleteFunc(slices.Clone(told), func(text string) bool { return text[:3] != "set" })
	slices.Sort(sets)
	if told[0] != "supervision.Settings" || told[len(told)-1] != "supervision.Begin" ||
		!slices.Contains(told, fmt.Sprintf("credits %d", promises)) || !slices.Equal(sets, []string{
		"set worker(alice, de) alice de flags 3, 3 classes", "set worker(bob, de) bob de flags 3, 3 classes"}) {
		t.Errorf("at first, the supervisor was told %q", told)
	}
	p.change(facts(fact("friends/alice", "friend", "bob")), nil)
	expectTold(t, to, "after a change of one user's accesses", "set worker(bob, de) bob de flags 3, 2 classes")
	p.change(facts(fact("population", "home", "bob", "de")), nil)
	expectTold(t, to, "after a user has gone", "forget bob de flags 0")
	p.change(nil, facts(fact("population", "key", "carol", "00")))
	expectTold(t, to, "after a key that is none", "key carol present 0")
	p.change(nil, facts(fact(knownfacts.Regions, knownfacts.Prefix, "198.51.100.0/24", "fr")))
	expectTold(t, to, "after a change of regions", "supervision.Regions")
	p.must(p.SwitchTo(wire.ModeDynamic))
	expectTold(t, to, "after a change of the mode", "supervision.Mode")
}

// With revocation "immediate" a supervisor ends the sessions of an instance that has lost
// an access, whether it has reported them or not, before it is told of the new set.
func TestSupervisorsRevoke(t *testing.T) {
	p := bare(t)
	p.analyze()
	p.spec.Revocation = revokeAtOnce
	v, to := superviseBare(t, p)
	to.Since()
	bindBare(t, v, 7, "bob", "worker(bob, de)")
	expectTold(t, to, "after a binding", "credits 1")
	if reset := p.change(facts(fact("friends/alice", "friend", "bob")), nil); reset != 1 {
		t.Errorf("sessions reset: %d; want 1", reset)
	}
	expectTold(t, to, "after a loss", "forget bob de flags 1", "end 7", "set worker(bob, de) bob de flags 3, 2 classes")
	p.change(facts(fact(knownfacts.Regions, knownfacts.Prefix, "192.0.2.0/24", "de"),
		fact("population", "home", "alice", "de"), fact("population", "home", "bob", "de")), nil)
	fences := 0
	for _, record := range to.Told() {
		if _, is := record.(supervision.Fence); is {
			fences++
		}
	}
	if fences != 2 { // before sessions are ended, and for the whole change
		t.Errorf("the loss of two users waited for the supervisor %d times", fences)
	}
}

// countedSessions is the number of sessions as others see it. It notes what is counted when it
// changes.
type countedSessions struct {
	openSessions
	metrics *metrics.Metrics
	noted   *[]uint64
}

func (c countedSessions) SessionBegan() {
	c.note("shai_interceptions_total")
	c.openSessions.SessionBegan()
}
func (c countedSessions) SessionOver() { c.note("shai_sessions_total"); c.openSessions.SessionOver() }

func (c countedSessions) note(counter string) {
	*c.noted = append(*c.noted, c.metrics.Counters()[counter])
}

// A session's beginning and its end are counted before they are seen: who waits for them may
// read the counts.
func TestSessionsAreCountedBeforeTheyAreSeen(t *testing.T) {
	p := bare(t)
	p.analyze()
	var noted []uint64
	p.sessions.counts = countedSessions{p.sessions.counts, p.services.Metrics, &noted}
	v, _ := superviseBare(t, p)
	bindBare(t, v, 7, "bob", "worker(bob, de)")
	v.Receive(supervision.Events{Events: []supervision.Event{{Kind: supervision.EventEnded, Session: 7, Worker: 4007}}})
	if !slices.Equal(noted, []uint64{1, 1}) {
		t.Errorf("when the session was seen to begin and to end, %v interceptions and sessions were counted", noted)
	}
}

// Nobody but the supervisor says which session a process has.
func TestSessionOfACaller(t *testing.T) {
	p := bare(t)
	v, _ := superviseBare(t, p)
	accepted := supervision.Event{Kind: supervision.EventAccepted, Session: 7, Worker: 4711}
	v.Receive(supervision.Events{Events: []supervision.Event{accepted}})
	for caller, want := range map[sandbox.Caller]bool{
		{PID: 4711, Session: 7}: true, {PID: 4711}: false, {PID: 4711, Session: 8}: false,
		{PID: 4712, Session: 7}: false,
	} {
		if got := p.sessionOf(caller) != nil; got != want {
			t.Errorf("%+v has a session: %v", caller, got)
		}
	}
	v.Receive(supervision.Events{Events: []supervision.Event{{Kind: supervision.EventEnded, Session: 7, Worker: 4711}}})
	if p.sessionOf(sandbox.Caller{PID: 4711, Session: 7}) != nil || len(p.live()) > 0 {
		t.Error("the session has ended")
	}
}

// What a supervisor reports of an instance that it was not told of ends the session.
func TestReportsThatCannotBe(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	to.Since()
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventBound, Session: 9, Principal: "alice", Instance: "worker(alice, de)"},
		{Kind: supervision.EventEnded, Session: 9},
		{Kind: supervision.EventAccepted, Session: 7, Worker: 4711},
		{Kind: supervision.EventBound, Session: 7, Principal: "mallory", Instance: "worker(mallory, de)"},
	}})
	expectTold(t, to, "after a binding to an unknown instance", "end 7", "credits 1")
	bindBare(t, v, 8, "alice", "worker(bob, de)")
	expectTold(t, to, "after a binding to another user's instance", "end 8", "credits 1")
	bindBare(t, v, 9, "alice", "worker(alice, fr)")
	expectTold(t, to, "after a binding to the instance of another region", "end 9", "credits 1")
	for number := range uint64(3) {
		if s := v.session(7 + number); s == nil || s.bound() != nil {
			t.Errorf("session %d has a user", 7+number)
		}
	}
	record, err := wire.Encode(1, wire.Open{Conduits: []uint32{1}})
	if err != nil {
		t.Fatal(err)
	}
	v.answerRecord(supervision.AskRecord{Session: 7, Record: record})
	expectTold(t, to, "after a session without a user asked for a document", "end 7")
}

// A supervisor goes by the regions that it knows. What it reports later than a change of them
// has happened, and is recorded.
func TestASessionIsOfTheRegionInWhichItBegan(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	p.change(nil, facts(fact(knownfacts.Regions, knownfacts.Prefix, "192.0.2.1/32", "fr")))
	to.Since()
	bindBare(t, v, 9, "alice", "worker(alice, de)")
	expectTold(t, to, "after a binding to the former region's instance", "credits 1")
	if s := v.session(9); s == nil || s.bound() == nil || s.region != "de" {
		t.Error("the session has no user, or is in another region")
	}
}

// A supervisor is owed a binding until the audit log promises to record it.
func TestBindingsArePromised(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	to.Since()
	log := p.services.Audit
	closed, err := audit.Open(audit.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	p.services.Audit = closed
	bindBare(t, v, 7, "bob", "worker(bob, de)")
	p.services.Audit = log
	expectTold(t, to, "of a log that takes no records", "end 7")
	v.pay()
	expectTold(t, to, "of a log that takes them again", "credits 1")
}

// A policy that is not enforced wants a record of each session, and one that the analysis
// has not validated is asked about: such sessions are not decided ahead.
func TestWhatIsDecidedAhead(t *testing.T) {
	p := bare(t)
	p.analyze()
	task := p.tasks["worker"]
	set := p.setOf("worker(alice, de)")
	if !task.isDecided(set) {
		t.Fatal("a set that the analysis has validated whole is asked about")
	}
	unforeseen, unvalidated := anotherLike(set), anotherLike(set)
	unforeseen.analyzed = false
	unvalidated.others = slices.DeleteFunc(slices.Clone(set.others), func(o analysis.Other) bool { return o.Write })
	for name, holds := range map[string]*capabilitySet{"unforeseen": unforeseen, "not validated": unvalidated} {
		if task.isDecided(holds) {
			t.Errorf("%s: decided ahead", name)
		}
	}
	p.apply(pipelinetest.Bare + "---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: trial}\n" +
		"spec: {mode: Audit, text: \"read :- sKeyIs(\\\"nobody\\\").\"}\n")
	p.analyze()
	if p.tasks["worker"].isDecided(p.setOf("worker(alice, de)")) {
		t.Error("decided ahead although a policy is not enforced")
	}
}

// A supervisor that does not answer is ended, with its sessions: otherwise it would go on
// by what was before. The change waits for their end.
func TestSupervisorThatDoesNotAnswer(t *testing.T) {
	p := bare(t)
	synctest.Test(t, func(t *testing.T) {
		v := newSupervised(p.tasks["worker"])
		to := &pipelinetest.Supervisor{Sessions: v, Stuck: true}
		task := pipelinetest.NewTask("worker", 0)
		task.Takes = time.Second
		v.started, v.to = task, to
		v.fence()
		select {
		case <-task.Done():
		default:
			t.Error("the task goes on")
		}
	})
}

// A login that the monitor refuses gets its reason, and no set.
func TestQuestionsAboutLogins(t *testing.T) {
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventAccepted, Session: 6, Worker: 4710, Mode: wire.ModeShai},
		{Kind: supervision.EventAccepted, Session: 7, Worker: 4711, Mode: wire.ModeShai,
			Peer: peerInGermany, Reason: "de"},
	}})
	to.Since()
	v.answerBind(supervision.AskBind{Session: 8, Principal: "alice", Region: "de"})
	expectTold(t, to, "of a session that has ended", "bind 8 status 13")
	v.answerBind(supervision.AskBind{Session: 6, Principal: "alice"})
	expectTold(t, to, "of a session whose address has no region", `set worker(alice, "") alice  flags 0, 0 classes`,
		"bind 6 status 13")
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "fr"})
	expectTold(t, to, "of a session whose region has changed", "bind 7 status 13")
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "de"})
	expectTold(t, to, "of a user who may, and whose set the supervisor has", "bind 7 status 0")
	unknown := *p.setOf("worker(alice, de)")
	unknown.keyValue = "a user whom the store does not have"
	p.sets["worker(alice, de)"], p.keyValue = &unknown, &kvfilter.Store{}
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "de"})
	p.keyValue = nil
	expectTold(t, to, "of a user whose set cannot be told", "forget alice de flags 0", "bind 7 status 13")
}

// Facts may hold names that no login can have: the supervisor is not told of them, and goes
// on. The network of an address whose region has no such name has none, not that of a larger
// network.
func TestNamesThatNoLoginHas(t *testing.T) {
	long := strings.Repeat("x", wire.NameMax)
	p := bare(t)
	p.analyze()
	v, to := superviseBare(t, p)
	to.Since()
	p.change(nil, facts(
		fact("population", "home", long, "de"), fact("population", "home", "a\x00b", "de"),
		fact("population", "key", long, "00"), fact("population", "key", "", "00"),
		fact("population", "key", "a\x00b", "00"), fact("population", "key", "carol", "00"),
		fact(knownfacts.Regions, knownfacts.Prefix, "192.0.2.128/25", long)))
	expectTold(t, to, "after names that no login has", "key carol present 0", "supervision.Regions")
	select {
	case <-v.started.Done():
		t.Error("the task was ended")
	default:
	}
	for address, want := range map[string]string{"192.0.2.1": "de", "192.0.2.129": ""} {
		if got := p.services.regionOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("region of %s: %q, want %q", address, got, want)
		}
	}
	superviseBare(t, p) // it can begin again
}

// Two instances whose long names begin alike are not taken for each other.
func TestLongNamesOfInstances(t *testing.T) {
	p := bare(t)
	p.analyze()
	p.spec.Revocation = revokeAtOnce
	alike := strings.Repeat("x", wire.NameMax-2)
	p.change(nil, facts(
		fact("population", "home", alike+"1", "de"), fact("population", "home", alike+"2", "de"),
		fact("friends/alice", "friend", alike+"1")))
	v, to := superviseBare(t, p)
	names := map[string]string{} // by principal, as the supervisor knows them
	for _, record := range to.Told() {
		if set, is := record.(supervision.Set); is {
			names[set.Principal] = set.Instance
		}
	}
	for i, principal := range []string{alike + "1", alike + "2"} {
		bindBare(t, v, uint64(7+i), principal, names[principal])
		if s := v.session(uint64(7 + i)); s.subject().Session == nil || s.subject().Session.Principal != principal {
			t.Errorf("the session of ...%s acts for %v", principal[len(alike):], s.subject().Session)
		}
	}
	to.Since()
	p.change(facts(fact("friends/alice", "friend", alike+"1")), nil)
	if told := to.Since(); !slices.Contains(told, "forget "+alike+"1 de flags 1") || !slices.Contains(told, "end 7") ||
		slices.Contains(told, "end 8") {
		t.Errorf("after the first one's loss, the supervisor was told %q", told)
	}
}

// peerInGermany is an address in the region "de" of pipelinetest.Bare.
var peerInGermany = netip.MustParseAddr("192.0.2.1").As16()

// bindBare reports that a session from peerInGermany has begun, and has a user.
func bindBare(t *testing.T, v *supervised, session uint64, principal, instance string) {
	t.Helper()
	worker := 4000 + int32(session)
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventAccepted, Session: session, Worker: worker, Mode: wire.ModeShai,
			Peer: peerInGermany, Reason: "de"},
		{Kind: supervision.EventBound, Session: session, Worker: worker, Principal: principal, Instance: instance,
			Reason: "analyzed"},
	}})
}
