// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// toldSupervisor keeps what a supervisor is told. It answers fences unless it is stuck.
type toldSupervisor struct {
	sessions *supervised
	stuck    bool

	mu   sync.Mutex
	told []supervision.Record
}

func (s *toldSupervisor) Send(record supervision.Record, _ ...*os.File) error {
	if _, err := supervision.Encode(record); err != nil {
		return err
	}
	s.mu.Lock()
	s.told = append(s.told, record)
	s.mu.Unlock()
	if fence, is := record.(supervision.Fence); is && !s.stuck {
		s.sessions.Receive(supervision.Fenced(fence))
	}
	return nil
}

// since forgets what it was told and returns a description of it.
func (s *toldSupervisor) since() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range s.told {
		switch r := record.(type) {
		case supervision.Set:
			texts = append(texts, fmt.Sprintf("set %s %s %s flags %d, %d classes", r.Instance, r.Principal, r.Region, r.Flags,
				len(r.Classes)))
		case supervision.Forget:
			texts = append(texts, fmt.Sprintf("forget %s %s flags %d", r.Principal, r.Region, r.Flags))
		case supervision.Key:
			texts = append(texts, fmt.Sprintf("key %s present %d", r.Principal, r.Present))
		case supervision.End:
			texts = append(texts, fmt.Sprintf("end %d", r.Session))
		case supervision.Bind:
			texts = append(texts, fmt.Sprintf("bind %d status %d", r.Session, r.Status))
		case supervision.Credits:
			texts = append(texts, fmt.Sprintf("credits %d", r.Count))
		case supervision.Fence:
		default:
			texts = append(texts, fmt.Sprintf("%T", record))
		}
	}
	s.told = nil
	return texts
}

// stoppedTask is a task that notes that it is stopped.
type stoppedTask struct {
	bareTask
	done  chan struct{}
	takes time.Duration // until it has stopped
}

func (t stoppedTask) Done() <-chan struct{} { return t.done }

func (t stoppedTask) Stop(context.Context) error {
	time.Sleep(t.takes)
	close(t.done)
	return nil
}

// superviseBare begins the supervision of the worker of bareManifest's pipeline.
func superviseBare(t *testing.T, p *pipeline) (*supervised, *toldSupervisor) {
	t.Helper()
	v := newSupervised(p.tasks["worker"])
	to := &toldSupervisor{sessions: v}
	if err := v.Begin(stoppedTask{bareTask{name: "worker"}, make(chan struct{}), 0}, to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.finish)
	return v, to
}

func expectTold(t *testing.T, to *toldSupervisor, when string, want ...string) {
	t.Helper()
	if got := to.since(); !slices.Equal(got, want) {
		t.Errorf("%s, the supervisor was told\n%q\nwant\n%q", when, got, want)
	}
}

// A supervisor is told everything before sessions begin, and every change afterwards.
func TestSupervisorsAreToldChanges(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	_, to := superviseBare(t, p)
	told := to.since()
	sets := slices.DeleteFunc(slices.Clone(told), func(text string) bool { return text[:3] != "set" })
	slices.Sort(sets)
	if told[0] != "supervision.Settings" || told[len(told)-1] != "supervision.Begin" ||
		!slices.Contains(told, fmt.Sprintf("credits %d", promises)) || !slices.Equal(sets, []string{
		"set worker(alice, de) alice de flags 3, 3 classes", "set worker(bob, de) bob de flags 3, 3 classes"}) {
		t.Errorf("at first, the supervisor was told %q", told)
	}
	change := func(change api.FactChange) {
		t.Helper()
		if _, err := m.ChangeFacts(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	change(api.FactChange{Remove: []api.Fact{apiFact("friends/alice", "friend", "bob")}})
	expectTold(t, to, "after a change of one user's accesses", "set worker(bob, de) bob de flags 3, 2 classes")
	change(api.FactChange{Remove: []api.Fact{apiFact("population", "home", "bob", "de")}})
	expectTold(t, to, "after a user has gone", "forget bob de flags 0")
	change(api.FactChange{Add: []api.Fact{apiFact("population", "key", "carol", "00")}})
	expectTold(t, to, "after a key that is none", "key carol present 0")
	change(api.FactChange{Add: []api.Fact{apiFact(regionsConduit, prefixRelation, "198.51.100.0/24", "fr")}})
	expectTold(t, to, "after a change of regions", "supervision.Regions")
	if _, err := m.SetMode(t.Context(), "bare", "dynamic"); err != nil {
		t.Fatal(err)
	}
	expectTold(t, to, "after a change of the mode", "supervision.Mode")
}

// A change has happened when every supervisor has confirmed it.
func TestChangesWaitForSupervisors(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	_, to := superviseBare(t, p)
	for name, change := range map[string]func() error{
		"a change of facts": func() error {
			_, err := m.ChangeFacts(t.Context(), api.FactChange{Remove: []api.Fact{apiFact("friends/alice", "friend", "bob")}})
			return err
		},
		"an analysis": func() error {
			_, err := m.Analyze(t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
			return err
		},
		"a bundle that leaves the pipeline as it is": func() error {
			return applyText(m, bareManifest+"---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: other}\n"+
				"spec: {text: \"read :- true.\"}\n")
		},
		"an expiry":            func() error { return m.expire(t.Context(), time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)) },
		"a change of the mode": func() error { _, err := m.SetMode(t.Context(), "bare", "audit"); return err },
	} {
		to.since()
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		to.mu.Lock()
		told := to.told
		to.mu.Unlock()
		if len(told) == 0 {
			t.Fatalf("%s: the supervisor was told nothing", name)
		}
		if _, waited := told[len(told)-1].(supervision.Fence); !waited {
			t.Errorf("%s: not confirmed; the last record is %T", name, told[len(told)-1])
		}
	}
	if m.pipelines["bare"] != p {
		t.Error("the bundle has replaced the pipeline")
	}
}

// With revocation "immediate" a supervisor ends the sessions of an instance that has lost
// an access, whether it has reported them or not, before it is told of the new set.
func TestSupervisorsRevoke(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	p.spec.Revocation = revokeAtOnce
	v, to := superviseBare(t, p)
	to.since()
	bindBare(t, v, 7, "bob", "worker(bob, de)")
	expectTold(t, to, "after a binding", "credits 1")
	loss := api.FactChange{Remove: []api.Fact{apiFact("friends/alice", "friend", "bob")}}
	result, err := m.ChangeFacts(t.Context(), loss)
	if err != nil || result.SessionsReset != 1 {
		t.Errorf("sessions reset: %d, %v; want 1", result.SessionsReset, err)
	}
	expectTold(t, to, "after a loss", "forget bob de flags 1", "end 7", "set worker(bob, de) bob de flags 3, 2 classes")
	loss = api.FactChange{Remove: []api.Fact{apiFact(regionsConduit, prefixRelation, "192.0.2.0/24", "de"),
		apiFact("population", "home", "alice", "de"), apiFact("population", "home", "bob", "de")}}
	if _, err := m.ChangeFacts(t.Context(), loss); err != nil {
		t.Fatal(err)
	}
	fences := 0
	to.mu.Lock()
	for _, record := range to.told {
		if _, is := record.(supervision.Fence); is {
			fences++
		}
	}
	to.mu.Unlock()
	if fences != 2 { // before sessions are ended, and for the whole change
		t.Errorf("the loss of two users waited for the supervisor %d times", fences)
	}
}

// Nobody but the supervisor says which session a process has.
func TestSessionOfACaller(t *testing.T) {
	_, p := bareMonitor(t)
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
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	v, to := superviseBare(t, p)
	to.since()
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventBound, Session: 9, Principal: "alice", Instance: "worker(alice, de)"},
		{Kind: supervision.EventEnded, Session: 9},
		{Kind: supervision.EventAccepted, Session: 7, Worker: 4711},
		{Kind: supervision.EventBound, Session: 7, Principal: "mallory", Instance: "worker(mallory, de)"},
	}})
	expectTold(t, to, "after a binding to an unknown instance", "end 7", "credits 1")
	bindBare(t, v, 8, "alice", "worker(bob, de)")
	expectTold(t, to, "after a binding to another user's instance", "end 8", "credits 1")
	change := api.FactChange{Add: []api.Fact{apiFact(regionsConduit, prefixRelation, "192.0.2.1/32", "fr")}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	to.since()
	bindBare(t, v, 9, "alice", "worker(alice, de)")
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
	v.answerOpen(supervision.AskOpen{Session: 7, Record: record})
	expectTold(t, to, "after a session without a user asked for a document", "end 7")
}

// A supervisor is owed a binding until the audit log promises to record it.
func TestBindingsArePromised(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	v, to := superviseBare(t, p)
	to.since()
	log := m.audit
	closed, err := audit.Open(audit.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	m.audit = closed
	bindBare(t, v, 7, "bob", "worker(bob, de)")
	m.audit = log
	expectTold(t, to, "of a log that takes no records", "end 7")
	v.pay()
	expectTold(t, to, "of a log that takes them again", "credits 1")
}

// A policy that is not enforced wants a record of each session, and one that the analysis
// has not validated is asked about: such sessions are not decided ahead.
func TestWhatIsDecidedAhead(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	task := p.tasks["worker"]
	set := p.setOf("worker(alice, de)")
	if !task.isDecided(set) {
		t.Fatal("a set that the analysis has validated whole is asked about")
	}
	unforeseen, unvalidated := *set, *set
	unforeseen.analyzed = false
	unvalidated.others = slices.DeleteFunc(slices.Clone(set.others), func(o analysis.Other) bool { return o.Write })
	for name, holds := range map[string]*capabilitySet{"unforeseen": &unforeseen, "not validated": &unvalidated} {
		if task.isDecided(holds) {
			t.Errorf("%s: decided ahead", name)
		}
	}
	applyBare(t, m, bareManifest+"---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: trial}\n"+
		"spec: {mode: Audit, text: \"read :- sKeyIs(\\\"nobody\\\").\"}\n")
	p = m.pipelines["bare"]
	analyzeBare(t, m)
	if p.tasks["worker"].isDecided(p.setOf("worker(alice, de)")) {
		t.Error("decided ahead although a policy is not enforced")
	}
}

// A supervisor that does not answer is ended, with its sessions: otherwise it would go on
// by what was before. The change waits for their end.
func TestSupervisorThatDoesNotAnswer(t *testing.T) {
	_, p := bareMonitor(t)
	synctest.Test(t, func(t *testing.T) {
		v := newSupervised(p.tasks["worker"])
		to := &toldSupervisor{sessions: v, stuck: true}
		task := stoppedTask{bareTask{name: "worker"}, make(chan struct{}), time.Second}
		v.started, v.to = task, to
		v.fence()
		select {
		case <-task.done:
		default:
			t.Error("the task goes on")
		}
	})
}

// A login that the monitor refuses gets its reason, and no set.
func TestQuestionsAboutLogins(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	v, to := superviseBare(t, p)
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventAccepted, Session: 6, Worker: 4710, Mode: wire.ModeShai},
		{Kind: supervision.EventAccepted, Session: 7, Worker: 4711, Mode: wire.ModeShai, Peer: peerInGermany},
	}})
	to.since()
	v.answerBind(supervision.AskBind{Session: 8, Principal: "alice", Region: "de"})
	expectTold(t, to, "of a session that has ended", "bind 8 status 13")
	v.answerBind(supervision.AskBind{Session: 6, Principal: "alice"})
	expectTold(t, to, "of a session whose address has no region", `set worker(alice, "") alice  flags 0, 0 classes`,
		"bind 6 status 13")
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "fr"})
	expectTold(t, to, "of a session whose region has changed", "bind 7 status 13")
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "de"})
	expectTold(t, to, "of a user who may", "set worker(alice, de) alice de flags 3, 3 classes", "bind 7 status 0")
	unknown := *p.setOf("worker(alice, de)")
	unknown.keyValue = "a user whom the store does not have"
	p.sets["worker(alice, de)"], p.keyValue = &unknown, &kvfilter.Store{}
	v.answerBind(supervision.AskBind{Session: 7, Principal: "alice", Region: "de"})
	p.keyValue = nil
	expectTold(t, to, "of a user whose set cannot be told", "bind 7 status 13")
}

// Facts may hold names that no login can have: the supervisor is not told of them, and goes
// on. The network of an address whose region has no such name has none, not that of a larger
// network.
func TestNamesThatNoLoginHas(t *testing.T) {
	long := strings.Repeat("x", wire.NameMax)
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	v, to := superviseBare(t, p)
	to.since()
	change := api.FactChange{Add: []api.Fact{
		apiFact("population", "home", long, "de"), apiFact("population", "home", "a\x00b", "de"),
		apiFact("population", "key", long, "00"), apiFact("population", "key", "", "00"),
		apiFact("population", "key", "a\x00b", "00"), apiFact("population", "key", "carol", "00"),
		apiFact(regionsConduit, prefixRelation, "192.0.2.128/25", long),
	}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	expectTold(t, to, "after names that no login has", "key carol present 0", "supervision.Regions")
	select {
	case <-v.started.Done():
		t.Error("the task was ended")
	default:
	}
	for address, want := range map[string]string{"192.0.2.1": "de", "192.0.2.129": ""} {
		if got := m.regionOf(netip.MustParseAddr(address)); got != want {
			t.Errorf("region of %s: %q, want %q", address, got, want)
		}
	}
	superviseBare(t, p) // it can begin again
}

// Two instances whose long names begin alike are not taken for each other.
func TestLongNamesOfInstances(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	p.spec.Revocation = revokeAtOnce
	alike := strings.Repeat("x", wire.NameMax-2)
	change := api.FactChange{Add: []api.Fact{
		apiFact("population", "home", alike+"1", "de"), apiFact("population", "home", alike+"2", "de"),
		apiFact("friends/alice", "friend", alike+"1"),
	}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	v, to := superviseBare(t, p)
	names := map[string]string{} // by principal, as the supervisor knows them
	for _, record := range to.told {
		if set, is := record.(supervision.Set); is {
			names[set.Principal] = set.Instance
		}
	}
	for i, principal := range []string{alike + "1", alike + "2"} {
		bindBare(t, v, uint64(7+i), principal, names[principal])
		if s := v.session(uint64(7 + i)); s.subject().session == nil || s.subject().session.Principal != principal {
			t.Errorf("the session of ...%s acts for %v", principal[len(alike):], s.subject().session)
		}
	}
	to.since()
	change = api.FactChange{Remove: []api.Fact{apiFact("friends/alice", "friend", alike+"1")}}
	if _, err := m.ChangeFacts(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if told := to.since(); !slices.Contains(told, "forget "+alike+"1 de flags 1") || !slices.Contains(told, "end 7") ||
		slices.Contains(told, "end 8") {
		t.Errorf("after the first one's loss, the supervisor was told %q", told)
	}
}

// peerInGermany is an address in the region "de" of bareManifest.
var peerInGermany = netip.MustParseAddr("192.0.2.1").As16()

// bindBare reports that a session from peerInGermany has begun, and has a user.
func bindBare(t *testing.T, v *supervised, session uint64, principal, instance string) {
	t.Helper()
	worker := 4000 + int32(session)
	v.Receive(supervision.Events{Events: []supervision.Event{
		{Kind: supervision.EventAccepted, Session: session, Worker: worker, Mode: wire.ModeShai, Peer: peerInGermany},
		{Kind: supervision.EventBound, Session: session, Worker: worker, Principal: principal, Instance: instance,
			Reason: "analyzed"},
	}})
}
