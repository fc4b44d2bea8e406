// SPDX-License-Identifier: BSD-2-Clause

// Package audit keeps the monitor's append-only, hash-chained record of its decisions:
// one JSON object a line, each with the SHA-256 of the previous line.
package audit

import "time"

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
	Mode     Kind = "mode"     // a pipeline's mode was switched
	Task     Kind = "task"     // a task started or ended
	Analysis Kind = "analysis" // an analysis came into force
	Recovery Kind = "recovery" // a torn line was set aside, or records were lost
)

// Kinds lists all kinds.
var Kinds = []Kind{Decision, Denial, Binding, Session, Taint, Bundle, Fact, Mode, Task, Analysis, Recovery}

// Event is a report of the monitor. Empty fields are left out of the record.
type Event struct {
	Kind      Kind     `json:"kind"`
	Pipeline  string   `json:"pipeline,omitempty"`
	Task      string   `json:"task,omitempty"`
	Instance  string   `json:"instance,omitempty"`  // "worker(alice, de)"
	Principal string   `json:"principal,omitempty"` // "alice"
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
}

// Record is an event at its position in the chain.
type Record struct {
	Sequence uint64    `json:"sequence"` // counted from 1, without gaps
	Time     time.Time `json:"time"`     // UTC
	Previous string    `json:"previous"` // SHA-256 of the previous record's line, lower-case hex
	Event
	// Hash is the SHA-256 of the record's line without this field.
	Hash string `json:"hash"`
}

// Query selects records. Zero fields select all.
type Query struct {
	Kinds     []Kind
	Principal string
	Conduit   string // a path, or a prefix of one that ends in "/"
	Task      string
	Since     time.Time
	Allowed   *bool
	Limit     int  // number of records, the latest; 0 means all
	Follow    bool // continue with new records as they are written
}

// Verification is the result of checking the chain.
type Verification struct {
	Records uint64 `json:"records"` // checked, up to the first fault
	Files   int    `json:"files"`
	Last    string `json:"last"` // hash of the last good record
	// Fault names the first altered or missing record: file, line and what is wrong.
	// Empty if the chain is complete.
	Fault string `json:"fault,omitempty"`
}
