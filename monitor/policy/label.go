// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// Label is a set of obligations on everything that is derived from some data. The zero
// Label demands nothing. Labels are immutable.
type Label struct{ duties []duty }

// duty is an obligation for a conduit.
type duty struct {
	obligation *obligation
	this       string // "" if the obligation does not depend on it
}

func newDuty(o *obligation, this string) duty {
	if !o.usesIt {
		this = ""
	}
	return duty{o, this}
}

func (d duty) compare(other duty) int {
	return cmp.Or(strings.Compare(d.obligation.key, other.obligation.key), strings.Compare(d.this, other.this))
}

func (d duty) equal(other duty) bool {
	return d.this == other.this && (d.obligation == other.obligation || d.obligation.key == other.obligation.key)
}

func (d duty) rule() Rule { return Rule{d.obligation.policy, d.obligation.name, d.this} }

func (d duty) String() string {
	text := d.rule().String()
	if d.this != "" {
		text += " on " + d.this
	}
	for _, exit := range d.obligation.exits {
		text += ", until " + exit.clause().text(d.this)
	}
	return text
}

// Label returns the obligations that follow the data of the named conduit. For a
// task's taint, pass the task's name.
func (p *Policy) Label(conduit string) Label { return labelOf(p.obligations, conduit) }

func labelOf(obligations []*obligation, this string) Label {
	if len(obligations) == 0 {
		return Label{}
	}
	duties := make([]duty, len(obligations))
	for i, o := range obligations {
		duties[i] = newDuty(o, this)
	}
	return Label{duties}
}

// Exits returns the conditions of the exits behind which nothing remains, as a policy has them after `until`.
func (l Label) Exits() (conditions []string) {
	for _, d := range l.duties {
		for i := range d.obligation.exits {
			if exit := &d.obligation.exits[i]; len(exit.behind) == 0 {
				conditions = append(conditions, exit.clause().text(d.this))
			}
		}
	}
	return conditions
}

// Readers returns the conditions of those who may read what is derived, as a policy has them after `read :-`.
func (l Label) Readers() (conditions []string) {
	for _, d := range l.duties {
		clauses := d.obligation.rule().clauses
		for i := range clauses {
			conditions = append(conditions, clauses[i].text(d.this))
		}
	}
	return conditions
}

// isEmpty reports whether the label demands nothing.
func (l Label) isEmpty() bool { return len(l.duties) == 0 }

// Len returns the number of obligations.
func (l Label) Len() int { return len(l.duties) }

// Join returns the label of data derived from both: all obligations, without
// duplicates.
func (l Label) Join(other Label) Label {
	if l.isEmpty() {
		return other
	}
	if other.isEmpty() {
		return l
	}
	duties := append(slices.Clone(l.duties), other.duties...)
	slices.SortFunc(duties, duty.compare)
	return Label{slices.CompactFunc(duties, duty.equal)}
}

// Key identifies the label's meaning; equal keys mean equal labels.
func (l Label) Key() string {
	duties := slices.SortedFunc(slices.Values(l.duties), duty.compare)
	var key []byte
	for _, d := range slices.CompactFunc(duties, duty.equal) {
		for _, part := range []string{d.obligation.key, d.this} {
			key = binary.AppendUvarint(key, uint64(len(part)))
			key = append(key, part...)
		}
	}
	return string(key)
}

// String lists the obligations for people.
func (l Label) String() string {
	if l.isEmpty() {
		return "no obligations"
	}
	texts := make([]string, len(l.duties))
	for i, d := range l.duties {
		texts[i] = d.String()
	}
	return strings.Join(texts, "; ")
}
