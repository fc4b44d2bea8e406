// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// shifts is the manifest of pipelinetest.Bare whose workers have a role, by a fact, and a shift of ten
// years.
var shifts = strings.NewReplacer(
	"parameters: [user, region]\n  taint", "parameters: [user, region, role, shift]\n  taint",
	`policy user(name, region) { read :- sKeyIs(name), sRegionIs(region). }`,
	`policy user(name, region, role, shift: time) {
      read :- sKeyIs(name), sRegionIs(region), "employees" says role(name, role), timeIs(T), le(shift, T).
    }`,
	`arguments: {name: "{user}", region: "{region}"}`,
	`arguments: {name: "{user}", region: "{region}", role: "{role}", shift: "{shift}"}`,
	"  expect:\n", `  parameters:
    - {name: role, from: {conduit: employees, says: role}}
    - {name: shift, window: {start: "2020-01-01T00:00:00Z", every: 87600h}}
  expect:
`,
	"    - {conduit: regions,", "    - {conduit: employees, says: role, tuples: [[alice, editor], [bob, editor]]}\n    - {conduit: regions,",
).Replace(pipelinetest.Bare)

func working(t *testing.T) *fixture {
	p := bare(t)
	p.apply(shifts)
	return p
}

// window returns when the current window began and ends.
func window(t *testing.T, p *fixture) (begin string, end time.Time) {
	t.Helper()
	values, err := p.derive(p.tasks["worker"], "alice", "de")
	p.must(err)
	end, ok := p.NextWindow(time.Now())
	if !ok {
		t.Fatal("there is no window")
	}
	return values["shift"], end
}

func employed(user, role string) string { return fmt.Sprintf("worker(%s, de, %s, ", user, role) }

// The analysis foresees the instance of the current window and the next one, and a supervisor is told
// of the current one only, with its end: both have the same user and region.
func TestSupervisorsAreToldTheCurrentInstance(t *testing.T) {
	p := working(t)
	p.analyze()
	begin, end := window(t, p)
	var names []string
	for name := range p.sets {
		names = append(names, name)
	}
	slices.Sort(names)
	next := end.UTC().Format(time.RFC3339)
	want := []string{employed("alice", "editor") + begin + ")", employed("alice", "editor") + next + ")",
		employed("bob", "editor") + begin + ")", employed("bob", "editor") + next + ")"}
	if !slices.Equal(names, want) {
		t.Fatalf("the sets are %q, want %q", names, want)
	}
	for _, name := range names {
		holds := p.sets[name]
		if ends := holds.ends.Equal(end); ends != strings.Contains(name, begin) || holds.expires.After(holds.ends) {
			t.Errorf("%s ends at %v, expires at %v", name, holds.ends, holds.expires)
		}
	}
	_, to := superviseBare(t, p)
	set, inForce := to.Set(employed("bob", "editor") + begin + ")")
	if !inForce || set.Ends != end.UnixNano() || set.Expires == 0 || set.Expires > set.Ends {
		t.Errorf("the supervisor has %v: %+v; want one that ends at %v", inForce, set, end)
	}
	for _, text := range to.Since() {
		if strings.HasPrefix(text, "set ") && !strings.Contains(text, begin) {
			t.Errorf("the supervisor is told of an instance that is not: %q", text)
		}
	}
}

// A login is refused unless exactly one fact gives the value. The reason names it.
func TestSessionsNeedTheirParameters(t *testing.T) {
	p := working(t)
	p.analyze()
	refused := func() string {
		if _, err := p.Asked("worker", "bob", "de", 0); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, step := range []struct{ remove, add, want string }{
		{"", "", ""},
		{"", "chief", `parameter role has several values: more than one fact "employees" says role("bob", V); remove all but one`},
		{"editor", "", ""},
		{"chief", "", `parameter role has no value: no fact "employees" says role("bob", V); add the fact`},
	} {
		if step.remove != "" {
			p.change(facts(fact("employees", "role", "bob", step.remove)), nil)
		}
		if step.add != "" {
			p.change(nil, facts(fact("employees", "role", "bob", step.add)))
		}
		if got := refused(); got != step.want {
			t.Errorf("after %+v: %q, want %q", step, got, step.want)
		}
	}
}

// A session ends as soon as its user has another role or none, with lazy revocation, too, and in every
// mode. Those of others go on.
func TestSessionsEndWithTheirRole(t *testing.T) {
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeDynamic, wire.ModeAudit} {
		for _, change := range []struct {
			remove, add bool
		}{{remove: true}, {add: true}, {true, true}} {
			t.Run(fmt.Sprintf("%v %+v", mode, change), func(t *testing.T) {
				p := working(t)
				p.analyze()
				v, to := superviseBare(t, p)
				begin, _ := window(t, p)
				bindIn(v, 7, mode, "bob", employed("bob", "editor")+begin+")")
				bindIn(v, 8, mode, "alice", employed("alice", "editor")+begin+")")
				to.Since()
				gone := facts(fact("employees", "role", "bob", "editor"))
				come := facts(fact("employees", "role", "bob", "chief"))
				if !change.remove {
					gone = nil
				}
				if !change.add {
					come = nil
				}
				if reset := p.change(gone, come); reset != 1 {
					t.Errorf("%d sessions were ended", reset)
				}
				told := to.Since()
				if len(told) == 0 || told[0] != "forget bob de flags 1" || !slices.Contains(told, "end 7") ||
					slices.ContainsFunc(told, func(text string) bool {
						return strings.Contains(text, "alice") || text == "end 8"
					}) {
					t.Errorf("the supervisor was told %q", told)
				}
			})
		}
	}
}

// A session ends with its window, and only then; the next window's is another instance.
func TestSessionsEndWithTheirWindow(t *testing.T) {
	p := working(t)
	p.analyze()
	v, to := superviseBare(t, p)
	begin, end := window(t, p)
	bindIn(v, 7, wire.ModeShai, "bob", employed("bob", "editor")+begin+")")
	to.Since()
	if reset := p.EndOutdated(nil, end.Add(-time.Nanosecond)); reset != 0 || len(to.Since()) != 0 {
		t.Errorf("%d sessions ended before their window did", reset)
	}
	if reset := p.EndOutdated(nil, end); reset != 1 {
		t.Errorf("%d sessions ended with their window", reset)
	}
	if told := to.Since(); !slices.Contains(told, "forget bob de flags 1") || !slices.Contains(told, "end 7") {
		t.Errorf("the supervisor was told %q", told)
	}
	if len(v.told) != 0 {
		t.Errorf("%d sets of the former window are kept for ever", len(v.told))
	}
}

// A supervisor that reports a binding to an instance that its user is no more has its session ended.
func TestLateBindingsAreEnded(t *testing.T) {
	p := working(t)
	p.analyze()
	v, to := superviseBare(t, p)
	begin, _ := window(t, p)
	p.change(facts(fact("employees", "role", "bob", "editor")), facts(fact("employees", "role", "bob", "chief")))
	to.Since()
	bindIn(v, 7, wire.ModeShai, "bob", employed("bob", "editor")+begin+")")
	if told := to.Since(); !slices.Contains(told, "end 7") {
		t.Errorf("the supervisor was told %q", told)
	}
	if s := v.session(7); s.bound() != nil {
		t.Error("the session acts for a user of another role")
	}
}

// bindIn reports a session in a mode, and its binding.
func bindIn(v *supervised, number uint64, mode wire.Mode, principal, instance string) {
	event := supervision.Event{Session: number, Worker: 4000 + int32(number), Mode: mode, Peer: peerInGermany}
	accepted, bound := event, event
	accepted.Kind, accepted.Reason = supervision.EventAccepted, "de"
	bound.Kind, bound.Principal, bound.Instance = supervision.EventBound, principal, wire.Shorten(instance)
	v.Receive(supervision.Events{Events: []supervision.Event{accepted, bound}})
}

// A session that no supervisor serves ends likewise.
func TestUnsupervisedSessionsEndWithTheirRole(t *testing.T) {
	p := working(t)
	p.principal("bob", "de")
	p.change(nil, facts(fact(knownfacts.Regions, knownfacts.Prefix, "127.0.1.0/24", "de")))
	p.analyze()
	b := p.wireSession(t)
	if bound := b.authenticate("bob"); bound.Status != 0 {
		t.Fatalf("the login is refused: %s", bound.Reason)
	}
	if reset := p.change(facts(fact("employees", "role", "bob", "editor")), nil); reset != 1 {
		t.Errorf("%d sessions were ended", reset)
	}
	b.socket.Close() // the killed worker's
	b.dies()
	again := p.wireSession(t)
	if bound := again.authenticate("bob"); bound.Status == 0 || !strings.Contains(bound.Reason, "parameter role has no value") {
		t.Errorf("the login without a role gets %+v", bound)
	}
}

// Where nobody has ended it yet, nothing is decided for a session whose instance is another one: in every
// mode, by number or by path, of its capability set or not.
func TestNothingIsDecidedForAFormerInstance(t *testing.T) {
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeAudit, wire.ModeDynamic, wire.ModeDynamicLazy} {
		t.Run(mode.String(), func(t *testing.T) {
			p := working(t)
			p.analyze()
			v, to := superviseBare(t, p)
			begin, _ := window(t, p)
			bindIn(v, 7, mode, "bob", employed("bob", "editor")+begin+")")
			if v.session(7).bound() == nil {
				t.Fatal("the session is not bound")
			}
			p.expectOpens(v, to, 0)
			_, err := p.services.Catalog.AtOnce().ChangeFacts(facts(fact("employees", "role", "bob", "editor")), nil)
			p.must(err)
			p.expectOpens(v, to, unix.EACCES)
		})
	}
}

// expectOpens checks what session 7 is told that asks for a document in every way.
func (f *fixture) expectOpens(v *supervised, to *pipelinetest.Supervisor, want unix.Errno) {
	f.t.Helper()
	to.Since()
	record, err := wire.Encode(1, wire.Open{Conduits: []uint32{f.id("/open/1.txt")}})
	f.must(err)
	v.answerRecord(supervision.AskRecord{Session: 7, Record: record})
	relay, ok := to.Told()[0].(supervision.Relay)
	if !ok {
		f.t.Fatalf("the supervisor was told %q", to.Since())
	}
	_, answer, err := wire.Decode(relay.Record, wire.TypeOpened)
	f.must(err)
	if got := answer.(wire.Opened).Status[0]; got != int32(want) {
		f.t.Errorf("the open of a number is answered with %v; want %v", unix.Errno(got), want)
	}
	path := filepath.Join(f.services.Options.Data, "/open/1.txt")
	request := pipelinetest.OpenRequest(f.t, pipelinetest.NewTask("worker", 0), 4007, path, unix.O_RDONLY)
	request.Caller.Session = 7
	if got := f.Open(f.t.Context(), request); got.Errno != want {
		f.t.Errorf("the open of a path is answered with %+v; want %v", got, want)
	}
	leaving := f.decide(f.counts.Begin(metrics.Send), v.session(7).actor(), policy.Leave, v.task.entrance.egress())
	if leaving.Allowed != (want == 0) {
		f.t.Errorf("data may leave: %+v", leaving)
	}
}
