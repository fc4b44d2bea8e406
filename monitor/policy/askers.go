// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"sync/atomic"
	"unique"
)

// membersOfAll and membersPerTaint are how many members of sets are looked at for taints. It takes some
// nanoseconds for each.
const (
	membersOfAll    = 1 << 20
	membersPerTaint = 1 << 14
)

// Askers finds those of many taints that a label may be covered by: it goes from the label's facts
// to the names in them, as [Template.Candidates] goes from a name to labels. That suits a population,
// in which most names and most labels are asked about. It is safe for concurrent use.
type Askers struct {
	index *FactIndex
	// left are the members of sets that may still be looked at. With large sets the other way takes less time.
	left atomic.Int64
	// Taints are chained by the name that they demand; a link is one more than the taint's number.
	byName map[unique.Handle[string]]uint32
	byID   []uint32 // the same by the name's number in the index
	next   []uint32
}

// NewAskers prepares taints. Those that name no principal, and nil, are never found. It returns nil
// if the state's facts are not in a [FactIndex].
func NewAskers(state State, taints []*Assumed) *Askers {
	index := indexOf(state)
	if index == nil {
		return nil
	}
	a := &Askers{index: index, byName: make(map[unique.Handle[string]]uint32),
		byID: make([]uint32, index.values.length), next: make([]uint32, len(taints))}
	a.left.Store(membersOfAll + membersPerTaint*int64(len(taints)))
	for i, taint := range taints {
		name := taint.Principal()
		if name == "" {
			continue
		}
		handle, link := unique.Make(name), uint32(i+1)
		a.next[i], a.byName[handle] = a.byName[handle], link
		if id, ok := index.idOf(String(name)); ok {
			a.byID[id] = link
		}
	}
	return a
}

// Principal returns the principal that the taint demands of those who read what is derived; "" if
// there is none.
func (a *Assumed) Principal() string {
	if a == nil || a.asker == nil {
		return ""
	}
	return a.asker.environment.Session.Principal
}

// Of calls yield with the number of each taint that may cover the label, with some more than once.
// If it returns true, no other taint that names a principal covers the label, now or later, whatever
// else it demands. If it returns false, that cannot be told.
func (a *Askers) Of(label *Demanded, yield func(taint int)) (complete bool) {
	if label.program == nil {
		return false
	}
	all := label.program.of(label.rule.compiled().clauses).code
	for at := 0; at < len(all); at = int(all[at].end) {
		if !a.ofClause(all[at:all[at].end], yield) {
			return false
		}
	}
	return true
}

// ofClause does the same for one clause: who satisfies it is the reader that it names, or is among
// those in the set in which it looks its reader up.
func (a *Askers) ofClause(code []instruction, yield func(taint int)) bool {
	reader := -1 // the variable that sKeyIs gives a value
	for i := range code {
		c := &code[i]
		switch {
		case c.op == opKey && c.identity != (unique.Handle[string]{}):
			a.chain(a.byName[c.identity], yield)
			return true
		case c.op == opKey && c.tested.kind == operandBind:
			reader = c.tested.slot
		case c.op == opSays && c.single && c.fixed && c.tested.kind == operandSlot && c.tested.slot == reader:
			return a.ofSet(a.index.group(c.conduit.value.text, c.relation, 1, false), yield)
		}
	}
	return false
}

// ofSet does it for the members of a set; nil is the empty one.
func (a *Askers) ofSet(set *factGroup, yield func(taint int)) bool {
	if set == nil {
		return true
	}
	if a.left.Add(-int64(set.count)) < 0 {
		return false
	}
	for _, chunk := range set.rows.chunks {
		for at := 0; at < len(chunk); at += set.rows.width {
			if id := chunk[at]; int(id) < len(a.byID) {
				a.chain(a.byID[id], yield)
			}
		}
	}
	return true
}

func (a *Askers) chain(link uint32, yield func(taint int)) {
	for ; link != 0; link = a.next[link-1] {
		yield(int(link - 1))
	}
}
