// SPDX-License-Identifier: BSD-2-Clause

package decision

import (
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Running is the running taint of a session or task: the labels of everything that it may
// have read, and the conduits that it can write to without being asked again. Labels are
// added by Read and Log and never removed.
//
// The labels stay apart, since each obligation is decided on by itself: a flow that was
// allowed is decided on again only for labels that were added since, unless the state has
// changed. The time for n reads and m writes thus grows with n+m.
//
// It is not safe for concurrent use.
type Running struct {
	labels []policy.Label // the first demands nothing: a flow has to be allowed without a taint, too
	known  map[string]bool
	log    []policy.Label // read, and not yet among the labels
	held   []policy.Conduit
	isHeld map[flow]bool
	kept   map[string]*catalog.State // by label: the state in which all held conduits keep it
	flows  map[flow]*settlement
}

// flow identifies a way out. Two conduits are the same if all that decisions depend on is.
type flow struct {
	what     policy.Operation
	conduit  policy.Conduit // without its policy, which is bound anew for each access
	policyID policy.ID
}

func flowTo(what policy.Operation, conduit policy.Conduit) flow {
	out := flow{what: what, conduit: conduit}
	if conduit.Policy != nil {
		out.policyID, out.conduit.Policy = conduit.Policy.ID(), nil
	}
	return out
}

// settlement is how far a flow is decided on.
type settlement struct {
	state    *catalog.State
	labels   int   // those before are decided on: they allow the flow
	changing []int // of these, those to decide on each time
	reason   string
}

// NewRunning returns the taint of a subject that may have read data with these labels, and
// that can write to the held conduits. Each of them is known to keep all of the labels.
func NewRunning(labels []policy.Label, held []policy.Conduit) *Running {
	r := &Running{
		labels: []policy.Label{{}}, known: map[string]bool{"": true}, kept: map[string]*catalog.State{},
		flows: map[flow]*settlement{}, isHeld: map[flow]bool{},
	}
	for _, conduit := range held {
		r.Hold(conduit)
	}
	for _, label := range labels {
		r.join(label)
	}
	return r
}

// Read decides on a read, and adds what is read to the taint if it is allowed. No label
// forbids a read by itself. It is refused if a held conduit does not keep the label: a write
// to that conduit could not be refused any more.
func (r *Running) Read(f Flow, state *catalog.State, now time.Time) Decision {
	label := f.Conduit.Label()
	found := r.keeps(f.Who, label, state, now)
	if found.Allowed {
		r.join(label)
	}
	return found
}

// Add adds what is read to the taint, without a decision: another one has been made.
func (r *Running) Add(conduit policy.Conduit) { r.join(conduit.Label()) }

// Raise adds labels, and replaces what is held: it is known anew, since the subject was
// stopped and has closed conduits that do not keep the labels.
func (r *Running) Raise(labels []policy.Label, held []policy.Conduit) {
	r.replay()
	for _, label := range labels {
		r.join(label)
	}
	r.held = nil
	clear(r.isHeld)
	clear(r.kept)
	for _, conduit := range held {
		r.Hold(conduit)
	}
}

// maxLog limits the reads that are logged before their labels are joined.
const maxLog = 1024

// Log adds what is read to the taint, without a decision. It does nothing and returns false
// if there are held conduits: then a read has to be decided on.
func (r *Running) Log(conduit policy.Conduit) bool {
	if len(r.held) > 0 {
		return false
	}
	r.log = append(r.log, conduit.Label())
	if len(r.log) == maxLog {
		r.replay()
	}
	return true
}

// replay joins the labels of the reads that were logged.
func (r *Running) replay() {
	for _, label := range r.log {
		r.join(label)
	}
	r.log = r.log[:0]
}

func (r *Running) join(label policy.Label) {
	if key := label.Key(); !r.known[key] {
		r.known[key] = true
		r.labels = append(r.labels, label)
	}
}

// keeps decides whether all held conduits keep a label.
func (r *Running) keeps(who Subject, label policy.Label, state *catalog.State, now time.Time) Decision {
	out := Decision{Decision: policy.Decision{Allowed: true, Reason: "joined to the running taint"}}
	key := label.Key()
	if len(r.held) == 0 || r.kept[key] == state {
		return out
	}
	who.Taint = label
	stays := true
	for _, conduit := range r.held {
		found := Decide(Flow{Who: who, What: policy.Write, Conduit: conduit}, state, now)
		if !found.Allowed {
			reason := "it could be written to " + conduit.Name + ", which is open for writing: " + found.Reason
			found.Decision = policy.Decision{Sentence: found.Sentence, Reason: reason, Unmet: found.Unmet,
				Err: found.Err}
			return found
		}
		stays = stays && lasts(found)
		if out.WouldDeny == "" {
			out.WouldDeny, out.Relaxed = found.WouldDeny, found.Relaxed
		}
	}
	if stays {
		r.kept[key] = state
	}
	return out
}

// Decide decides on a write, or on data that leave, by the taint as it is. The flow's taint
// is ignored; its session is always the same.
func (r *Running) Decide(f Flow, state *catalog.State, now time.Time) Decision {
	r.replay()
	key := flowTo(f.What, f.Conduit)
	s := r.flows[key]
	if s == nil || s.state != state {
		s = &settlement{state: state}
		r.flows[key] = s
	}
	out := Decision{Decision: policy.Decision{Allowed: true}}
	ask := func(i int) Decision {
		f.Who.Taint = r.labels[i]
		found := Decide(f, state, now)
		if found.Allowed && out.WouldDeny == "" {
			out.WouldDeny, out.Relaxed = found.WouldDeny, found.Relaxed
		}
		return found
	}
	for _, i := range s.changing {
		if found := ask(i); !found.Allowed {
			return found
		}
	}
	for ; s.labels < len(r.labels); s.labels++ {
		found := ask(s.labels)
		if !found.Allowed {
			return found
		}
		if s.reason = found.Reason; !lasts(found) {
			s.changing = append(s.changing, s.labels)
		}
	}
	out.Reason = s.reason
	return out
}

// Hold notes that the subject can write to a conduit from now on without being asked. The
// write has been decided on.
func (r *Running) Hold(conduit policy.Conduit) {
	key := flowTo(policy.Write, conduit)
	if r.isHeld[key] {
		return
	}
	r.isHeld[key] = true
	r.held = append(r.held, conduit)
	clear(r.kept)
}

// lasts reports whether an allowed flow stays allowed and unrecorded as long as the state is
// the same: time goes on, and a conduit's length changes with each write.
func lasts(found Decision) bool {
	for _, condition := range found.Conditions {
		switch condition.Kind {
		case policy.ClockBefore, policy.ClockFrom, policy.ConduitLengthIs:
			return false
		}
	}
	return found.ByEveryPolicy()
}
