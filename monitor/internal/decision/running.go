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
// changed. So each label is decided on once for each way out, of which there are few.
//
// What it remembers is limited, since tasks name files as they like. Beyond, it refuses what
// it would have to know more for. It is not safe for concurrent use.
type Running struct {
	labels []policy.Label // the first demands nothing: a flow has to be allowed without a taint, too
	known  map[string]bool
	log    []policy.Label // read, and not yet among the labels
	held   []policy.Conduit
	isHeld map[flow]bool
	kept   map[string]*settlement // by label: of the held conduits
	flows  map[flow]*settlement   // of the labels
	// lost says that labels are missing, and open that held conduits are: there were too many.
	lost, open bool
}

// What is remembered of one subject.
const (
	maxLabels  = 1 << 18 // six of each of 40,000 users
	maxHeld    = 1 << 14 // each is decided on at each read of another label
	maxSettled = 1 << 18 // of flows, and of labels; to settle them again takes only time
)

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

// settlement is how far decisions about all elements of a list are made, which only grows.
type settlement struct {
	state    *catalog.State
	settled  int   // those before allow it
	changing []int // of these, those to decide on each time
	reason   string
}

// settlementOf returns the settlement of a key, which may be new.
func settlementOf[K comparable](all map[K]*settlement, key K) *settlement {
	s := all[key]
	if s == nil {
		if len(all) >= maxSettled {
			clear(all)
		}
		s = &settlement{}
		all[key] = s
	}
	return s
}

// settle decides on what is not settled in the state of a list of some length. ask decides on
// one element. It is allowed if all elements allow it.
func (s *settlement) settle(state *catalog.State, length int, ask func(i int) Decision) Decision {
	if s.state != state {
		*s = settlement{state: state}
	}
	out := Decision{Decision: policy.Decision{Allowed: true}}
	decide := func(i int) Decision {
		found := ask(i)
		if out.WouldDeny == "" {
			out.WouldDeny = found.WouldDeny
		}
		out.relax(found.Relaxed...)
		return found
	}
	for _, i := range s.changing {
		if found := decide(i); !found.Allowed {
			return found
		}
	}
	for ; s.settled < length; s.settled++ {
		found := decide(s.settled)
		if !found.Allowed {
			return found
		}
		if s.reason = found.Reason; !lasts(found) {
			s.changing = append(s.changing, s.settled)
		}
	}
	out.Reason = s.reason
	return out
}

// NewRunning returns the taint of a subject that may have read data with these labels, and
// that can write to the held conduits. Each of them is known to keep all of the labels.
func NewRunning(labels []policy.Label, held []policy.Conduit) *Running {
	r := &Running{
		labels: []policy.Label{{}}, known: map[string]bool{"": true}, kept: map[string]*settlement{},
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
// to that conduit could not be refused any more. The decision is Onward.
func (r *Running) Read(f Flow, state *catalog.State, now time.Time) Decision {
	label := f.Conduit.Label()
	found := r.Keeps(f.Who, label, state, now)
	found.Onward = true
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
	r.held, r.open = nil, false
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
	key := label.Key()
	switch {
	case r.known[key]:
	case len(r.labels) == maxLabels:
		r.lost = true
	default:
		r.known[key] = true
		r.labels = append(r.labels, label)
	}
}

// Keeps decides whether all held conduits keep a label. The subject's taint is ignored.
func (r *Running) Keeps(who Subject, label policy.Label, state *catalog.State, now time.Time) Decision {
	if r.open {
		return refusal("more files are open for writing than are tracked; begin again to read more")
	}
	who.Taint = label
	found := settlementOf(r.kept, label.Key()).settle(state, len(r.held), func(i int) Decision {
		found := Decide(Flow{Who: who, What: policy.Write, Conduit: r.held[i]}, state, now)
		if !found.Allowed {
			reason := "it could be written to " + r.held[i].Name + ", which is open for writing: " + found.Reason
			found.Decision = policy.Decision{Sentence: found.Sentence, Reason: reason, Unmet: found.Unmet,
				Err: found.Err}
		}
		return found
	})
	if found.Allowed {
		found.Reason = "joined to the running taint"
	}
	return found
}

// Decide decides on a write, or on data that leave, by the taint as it is. The flow's taint
// is ignored; its session is always the same.
func (r *Running) Decide(f Flow, state *catalog.State, now time.Time) Decision {
	r.replay()
	if r.lost {
		return refusal("more was read, under more policies, than is tracked; begin again to write")
	}
	// A decision about what is written holds for this write alone.
	settled := &settlement{}
	if f.Update == nil {
		settled = settlementOf(r.flows, flowTo(f.What, f.Conduit))
	}
	return settled.settle(state, len(r.labels), func(i int) Decision {
		f.Who.Taint = r.labels[i]
		return Decide(f, state, now)
	})
}

// Label returns the label of everything that was read; all is false if labels are missing,
// since there were too many.
func (r *Running) Label() (label policy.Label, all bool) {
	r.replay()
	for _, one := range r.labels {
		label = label.Join(one)
	}
	return label, !r.lost
}

func refusal(reason string) Decision { return Decision{Decision: policy.Decision{Reason: reason}} }

// Hold notes that the subject can write to a conduit from now on without being asked. The
// write has been decided on.
func (r *Running) Hold(conduit policy.Conduit) {
	key := flowTo(policy.Write, conduit)
	switch {
	case r.isHeld[key]:
	case len(r.held) == maxHeld:
		r.open = true
	default:
		r.isHeld[key] = true
		r.held = append(r.held, conduit)
	}
}

// lasts reports whether an allowed flow stays allowed and unrecorded as long as the state and
// the session are the same. Others depend on time, which goes on, or on a conduit's length,
// which changes with each write.
func lasts(found Decision) bool {
	for _, condition := range found.Conditions {
		switch condition.Kind {
		case policy.FactPresent, policy.FactAbsent, policy.FactPresentAt,
			policy.FactsUnchanged, policy.FactsUnchangedAt,
			policy.PrincipalIs, policy.RegionIs, policy.AddressIs,
			policy.ConduitExists, policy.ConduitPolicyIs:
		default:
			return false
		}
	}
	return found.ByEveryPolicy()
}
