// SPDX-License-Identifier: BSD-2-Clause

// Package records has the records of the audit log, and how they are shown. Pure.
package records

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the subject of a record.
type Kind string

// The kinds of records.
const (
	Decision Kind = "decision" // a slow-path allow
	Denial   Kind = "denial"   // a slow-path refusal, or a refused system call
	Binding  Kind = "binding"  // a session authenticated, or failed to
	Session  Kind = "session"  // a session began, ended or was reset
	Taint    Kind = "taint"    // an instance raised its taint
	Bundle   Kind = "bundle"   // another bundle came into force
	Fact     Kind = "fact"     // facts were added or removed
	Document Kind = "document" // documents were added, renewed or removed
	Mode     Kind = "mode"     // a pipeline's mode was switched
	Task     Kind = "task"     // a task started or ended
	Analysis Kind = "analysis" // an analysis came into force
	Recovery Kind = "recovery" // of the log itself: its key, what was repaired or lost
	Reading  Kind = "reading"  // somebody else's user reads output, an explanation or this log

	// Retention says which records, the oldest, were removed.
	Retention Kind = "retention"
)

// Kinds lists all kinds.
var Kinds = [...]Kind{
	Decision, Denial, Binding, Session, Taint, Bundle, Fact, Document, Mode, Task, Analysis, Recovery, Reading,
	Retention,
}

// KindNames returns the names of all kinds.
func KindNames() []string {
	names := make([]string, len(Kinds))
	for i, kind := range Kinds {
		names[i] = string(kind)
	}
	return names
}

// ParseKinds returns the kinds with these names. An error says which ones there are.
func ParseKinds(names []string) (kinds []Kind, err error) {
	for _, name := range names {
		if !slices.Contains(Kinds[:], Kind(name)) {
			return nil, fmt.Errorf("%q is not known; expected %s", name, strings.Join(KindNames(), ", "))
		}
		kinds = append(kinds, Kind(name))
	}
	return kinds, nil
}

// Event is a report of the monitor. Empty fields are left out of the record.
type Event struct {
	Kind      Kind     `json:"kind"`
	Pipeline  string   `json:"pipeline,omitempty"`
	Task      string   `json:"task,omitempty"`
	Instance  string   `json:"instance,omitempty"`  // "worker(alice, de)"
	Principal string   `json:"principal,omitempty"` // "alice"
	Reader    string   `json:"reader,omitempty"`    // who reads, as the API server of Kubernetes names users
	Operation string   `json:"operation,omitempty"` // "open", "send", "authenticate", "ptrace"
	Conduit   string   `json:"conduit,omitempty"`
	Policy    string   `json:"policy,omitempty"`
	Clause    string   `json:"clause,omitempty"`
	Facts     []string `json:"facts,omitempty"`
	Allowed   bool     `json:"allowed"`
	Reason    string   `json:"reason,omitempty"`
	// LatencyMicroseconds is the duration of the decision.
	LatencyMicroseconds int64 `json:"latencyMicroseconds,omitempty"`
	// Repeated counts the identical denials, beyond the first, that this record
	// represents.
	Repeated uint64 `json:"repeated,omitempty"`
	// Omitted counts the denials of the task, different ones too, that this record stands
	// for and that are not recorded by themselves.
	Omitted uint64 `json:"omitted,omitempty"`
	// Removed is set in records of the kind Retention.
	Removed *Removal `json:"removed,omitempty"`
}

// Removal commits to the records that were removed from the beginning of the log. It is
// written before they are removed.
type Removal struct {
	Through uint64 `json:"through"` // the last of them
	Seal    string `json:"seal"`    // its mac, or hash; empty if it is unknown, since the next record is damaged
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

// Record is an event at its position in the chain.
type Record struct {
	Sequence uint64    `json:"sequence"` // counted from 1, without gaps
	Time     time.Time `json:"time"`     // UTC
	Previous string    `json:"previous"` // the previous record's seal
	Event
	// MAC is the record's seal: the HMAC-SHA256 of its line without this field, in
	// lower-case hexadecimal.
	MAC string `json:"mac,omitempty"`
	// Hash is the seal of records of monitors without a key: the SHA-256.
	Hash string `json:"hash,omitempty"`
}
