// SPDX-License-Identifier: BSD-2-Clause

package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// The world of these tests: documents that a set of people may read, with policies whose
// meaning the tests work out by themselves, as sets of readers.
var people = []string{"alice", "bob", "carol"}

const worldPolicies = `
policy open { read :- true. update :- true. }
policy private(owner) { read :- sKeyIs(owner). update :- true. }
policy friends(owner) {
  read   :- sKeyIs(owner).
  read   :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
  update :- true.
}
policy secret { update :- true. }
policy offer { read :- timeIs(T), lt(T, 2100-01-01T00:00:00Z). }
`

// world is the state in which the tests decide, with the friends that the model knows.
type world struct {
	t         testing.TB
	catalog   *catalog.Catalog
	templates map[string]*policy.Template
	friends   map[[2]string]bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	c, err := catalog.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	file, err := policy.Parse("world.pol", []byte(worldPolicies))
	if err != nil {
		t.Fatal(err)
	}
	templates, err := file.Compile()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, catalog: c, templates: map[string]*policy.Template{}, friends: map[[2]string]bool{}}
	for _, template := range templates {
		w.templates[template.Name()] = template
	}
	return w
}

// conduit returns a file whose policy is written like "friends(bob)".
func (w *world) conduit(name, written string) policy.Conduit {
	template, owner, _ := strings.Cut(strings.TrimSuffix(written, ")"), "(")
	arguments := map[string]string{}
	if owner != "" {
		arguments["owner"] = owner
	}
	bound, err := w.templates[template].Bind(arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	return policy.Conduit{Name: name, Kind: policy.FileConduit, Policy: bound}
}

// unfriend removes all friends.
func (w *world) unfriend() {
	for key, present := range w.friends {
		if present {
			w.toggle(key[0], key[1])
		}
	}
}

// toggle adds a friend, or removes one.
func (w *world) toggle(owner, friend string) {
	facts := []policy.Fact{{
		Conduit: "friends/" + owner, Relation: "friend", Arguments: []policy.Value{policy.String(friend)},
	}}
	key := [2]string{owner, friend}
	var err error
	if w.friends[key] {
		_, err = w.catalog.AtOnce().ChangeFacts(facts, nil)
	} else {
		_, err = w.catalog.AtOnce().ChangeFacts(nil, facts)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.friends[key] = !w.friends[key]
}

// readers is the model of a policy: who may read what is under it.
func (w *world) readers(written string) map[string]bool {
	template, owner, _ := strings.Cut(strings.TrimSuffix(written, ")"), "(")
	found := map[string]bool{}
	for _, one := range people {
		if template == "open" || owner == one || template == "friends" && w.friends[[2]string{owner, one}] {
			found[one] = true
		}
	}
	return found
}

// keeps is the model of a write: nobody may read what is written who may not read what was read.
func (w *world) keeps(to, from string) bool {
	if to == "open" { // anybody at all
		return from == "open"
	}
	for one := range w.readers(to) {
		if !w.readers(from)[one] {
			return false
		}
	}
	return true
}

// model is the running taint as a list of what was read.
type model struct {
	*world
	read, held []string
}

func (m *model) mayRead(what string) bool {
	for _, held := range m.held {
		if !m.keeps(held, what) {
			return false
		}
	}
	return true
}

func (m *model) mayWrite(what string) bool {
	for _, read := range m.read {
		if !m.keeps(what, read) {
			return false
		}
	}
	return true
}

func (m *model) mayLeave(to string) bool {
	for _, read := range m.read {
		if !m.readers(read)[to] {
			return false
		}
	}
	return true
}

func writtenPolicy() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		template := rapid.SampledFrom([]string{"open", "private", "friends", "friends", "secret"}).Draw(t, "policy")
		if template == "open" || template == "secret" {
			return template
		}
		return fmt.Sprintf("%s(%s)", template, rapid.SampledFrom(people).Draw(t, "owner"))
	})
}

// TestRunningTaint: over random sequences of reads, writes and changes of facts, the running
// taint decides as a model does that remembers everything that was read and evaluates all of
// it each time. A taint of which reads are logged decides the same.
func TestRunningTaint(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(r *rapid.T) {
		w.unfriend()
		m := &model{world: w}
		who := Subject{Session: &policy.Session{Principal: rapid.SampledFrom(people).Draw(r, "user")}}
		eager, lazy := NewRunning(nil, nil), NewRunning(nil, nil)
		decide := func(what policy.Operation, to policy.Conduit) bool {
			f := Flow{Who: who, What: what, Conduit: to}
			found := eager.Decide(f, w.catalog.State(), time.Now())
			if other := lazy.Decide(f, w.catalog.State(), time.Now()); other.Allowed != found.Allowed {
				r.Fatalf("%v %s: eager %v (%s), lazy %v (%s)", what, to.Name, found.Allowed, found.Reason, other.Allowed,
					other.Reason)
			}
			return found.Allowed
		}
		check := func(what string, got, want bool) {
			if got != want {
				r.Fatalf("%s: allowed %v, the model says %v; read %v, held %v, friends %v", what, got, want, m.read, m.held,
					w.friends)
			}
		}
		document := func() (string, policy.Conduit) {
			written := writtenPolicy().Draw(r, "of")
			return written, w.conduit(fmt.Sprintf("/%d", rapid.IntRange(0, 3).Draw(r, "number")), written)
		}
		r.Repeat(map[string]func(*rapid.T){
			"read": func(*rapid.T) {
				written, conduit := document()
				f := Flow{Who: who, What: policy.Read, Conduit: conduit}
				got := eager.Read(f, w.catalog.State(), time.Now()).Allowed
				if !lazy.Log(conduit) {
					check("logged read of "+written, lazy.Read(f, w.catalog.State(), time.Now()).Allowed, got)
				}
				check("read "+written, got, m.mayRead(written))
				if got {
					m.read = append(m.read, written)
				}
			},
			"write": func(*rapid.T) {
				written, conduit := document()
				check("write "+written, decide(policy.Write, conduit), m.mayWrite(written))
			},
			"open for writing": func(*rapid.T) {
				written, conduit := document()
				if decide(policy.Write, conduit) {
					eager.Hold(conduit)
					lazy.Hold(conduit)
					m.held = append(m.held, written)
				}
			},
			"leave": func(*rapid.T) {
				to := policy.Conduit{Name: "web", Kind: policy.ConnectionConduit}
				check("leave to "+who.Session.Principal, decide(policy.Leave, to), m.mayLeave(who.Session.Principal))
			},
			"change a fact": func(*rapid.T) {
				w.toggle(rapid.SampledFrom(people).Draw(r, "owner"), rapid.SampledFrom(people).Draw(r, "friend"))
			},
		})
	})
}

// TestRunningTaintFollowsTheState: what was decided is not remembered beyond a change of facts,
// nor for longer than the clock allows.
func TestRunningTaintFollowsTheState(t *testing.T) {
	w := newWorld(t)
	who := Subject{Session: &policy.Session{Principal: "alice"}}
	early := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	late := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
	w.toggle("bob", "alice")
	running := NewRunning(nil, []policy.Conduit{w.conduit("/held", "private(alice)")})
	read := func(written string, want bool) {
		t.Helper()
		f := Flow{Who: who, What: policy.Read, Conduit: w.conduit("/read", written)}
		if found := running.Read(f, w.catalog.State(), early); found.Allowed != want {
			t.Errorf("read %s: allowed %v (%s)", written, found.Allowed, found.Reason)
		}
	}
	leave := func(now time.Time, want bool) {
		t.Helper()
		f := Flow{Who: who, What: policy.Leave, Conduit: policy.Conduit{Name: "web", Kind: policy.ConnectionConduit}}
		if found := running.Decide(f, w.catalog.State(), now); found.Allowed != want {
			t.Errorf("leave: allowed %v (%s)", found.Allowed, found.Reason)
		}
	}
	read("friends(bob)", true)
	leave(early, true)
	w.toggle("bob", "alice")
	read("friends(bob)", false)
	leave(early, false)
	w.toggle("bob", "alice")
	read("friends(bob)", true)
	leave(early, true)
	running = NewRunning([]policy.Label{w.conduit("/offer", "offer").Label()}, nil)
	leave(early, true)
	leave(late, false)
	leave(early, true)
}

// TestRunningTaintIsLimited: when more is open for writing than is tracked, nothing more is read
// until the subject has closed it; when more was read, nothing is written any more.
func TestRunningTaintIsLimited(t *testing.T) {
	w := newWorld(t)
	who := Subject{Session: &policy.Session{Principal: "alice"}}
	kept, secret := w.conduit("/kept", "private(alice)"), w.conduit("/secret", "secret")
	running := NewRunning(nil, nil)
	expect := func(what policy.Operation, on policy.Conduit, want bool) {
		t.Helper()
		decide := running.Decide
		if what == policy.Read {
			decide = running.Read
		}
		found := decide(Flow{Who: who, What: what, Conduit: on}, w.catalog.State(), time.Now())
		if found.Allowed != want || !want && !strings.Contains(found.Reason, "tracked") {
			t.Errorf("%v %s: allowed %v (%s)", what, on.Name, found.Allowed, found.Reason)
		}
	}
	for i := range maxHeld {
		running.Hold(w.conduit(fmt.Sprintf("/%d", i), "private(alice)"))
	}
	expect(policy.Read, kept, true)
	running.Hold(w.conduit("/0", "private(alice)"))
	expect(policy.Read, kept, true)
	running.Hold(w.conduit("/more", "private(alice)"))
	expect(policy.Read, kept, false)
	expect(policy.Write, kept, true)
	running.Raise(nil, nil)
	expect(policy.Read, kept, true)

	for i := range maxLabels - 2 { // that of everybody, and alice's, are there
		running.Add(w.conduit("/read", fmt.Sprintf("private(%d)", i)))
	}
	expect(policy.Write, secret, true)
	running.Add(kept)
	expect(policy.Write, secret, true)
	running.Add(w.conduit("/read", "private(bob)"))
	expect(policy.Write, secret, false)
	expect(policy.Leave, policy.Conduit{Name: "web", Kind: policy.ConnectionConduit}, false)
}

// TestDecidedOnce: of a list that grows only what is new is decided on, but for decisions that
// do not last, and in another state. Otherwise a task that opens many files for writing, and
// reads after each, would keep the monitor busy.
func TestDecidedOnce(t *testing.T) {
	w := newWorld(t)
	var asked []int
	ask := func(i int) Decision {
		asked = append(asked, i)
		found := Decision{Decision: policy.Decision{Allowed: true}}
		switch i {
		case 0:
			found.Conditions = []policy.Condition{{Kind: policy.FactPresent}, {Kind: policy.PrincipalIs}}
		case 1:
			found.Conditions = []policy.Condition{{Kind: policy.FactPresent}, {Kind: policy.ClockBefore}}
		case 2:
			found.Conditions = []policy.Condition{{Kind: "of which nobody has thought"}}
		}
		return found
	}
	s := &settlement{}
	for _, step := range []struct {
		length  int
		changes bool
		want    string
	}{
		{2, false, "[0 1]"}, {2, false, "[1]"}, {4, false, "[1 2 3]"}, {4, true, "[0 1 2 3]"}, {5, false, "[1 2 4]"},
	} {
		if step.changes {
			w.toggle("bob", "alice")
		}
		asked = nil
		if found := s.settle(w.catalog.State(), step.length, ask); !found.Allowed || fmt.Sprint(asked) != step.want {
			t.Errorf("of %d asked %v, want %s", step.length, asked, step.want)
		}
	}

	running, kept := NewRunning(nil, nil), w.conduit("/kept", "private(alice)")
	read := Flow{Who: Subject{Session: &policy.Session{Principal: "alice"}}, What: policy.Read, Conduit: kept}
	for i := range 3 {
		running.Hold(w.conduit(fmt.Sprintf("/%d", i), "private(alice)"))
		if settled := settlementOf(running.kept, kept.Label().Key()).settled; settled != i {
			t.Errorf("before read %d: %d conduits are settled", i, settled)
		}
		running.Read(read, w.catalog.State(), time.Now())
	}
}
