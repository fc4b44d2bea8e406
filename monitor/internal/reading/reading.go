// SPDX-License-Identifier: BSD-2-Clause

// Package reading has what a user of Kubernetes may ask a monitor for, the answers, and how an
// answer is sealed for who asked. The plugin of kubectl and the monitor know it; what is between
// them carries sealed bytes.
package reading

import (
	"encoding/json"
	"time"

	"shai.dev/monitor/internal/audit/records"
)

// Request asks for one page of what only administrators may read. One of Log, Explanation and Audit
// is set. Who sends it, has found out who the reader is, and that it may read.
type Request struct {
	Reader    string         `json:"reader"`    // as the API server of Kubernetes names users
	Recipient []byte         `json:"recipient"` // the public key for which the answer is sealed
	Log       *LogQuestion   `json:"log,omitempty"`
	Explain   *Question      `json:"explain,omitempty"`
	Audit     *AuditQuestion `json:"audit,omitempty"`
}

// LogQuestion asks for what a task has printed.
type LogQuestion struct {
	Pipeline string `json:"pipeline"`
	Task     string `json:"task"`
	// Principal is for whom it is read, by the policies; empty: an administrator reads it.
	Principal string `json:"principal,omitempty"`
	Region    string `json:"region,omitempty"` // that the principal is in
	Previous  bool   `json:"previous,omitempty"`
	Before    string `json:"before,omitempty"` // the page before this place of an earlier one
}

// AuditQuestion asks for records of the audit log, the latest that are selected.
type AuditQuestion struct {
	Kinds     []records.Kind `json:"kinds,omitempty"`
	Principal string         `json:"principal,omitempty"`
	Conduit   string         `json:"conduit,omitempty"`
	Task      string         `json:"task,omitempty"`
	Since     time.Time      `json:"since,omitzero"`
	Before    uint64         `json:"before,omitempty"` // records with smaller numbers; 0: all
	Limit     int            `json:"limit,omitempty"`  // from 1 to MaxRecords; 0: MaxRecords
}

// MaxRecords is the most records of a page.
const MaxRecords = 1000

// MaxPage is the size of a page in bytes, before it is sealed: it has to fit into an object of the
// API server with room to spare.
const MaxPage = 256 << 10

// MaxLogText is how much of a log a page has: as JSON, it is longer by a third.
const MaxLogText = 180 << 10

// Answer is what is sealed: one of its fields is set.
type Answer struct {
	Log         *LogPage     `json:"log,omitempty"`
	Explanation *Explanation `json:"explanation,omitempty"`
	Audit       *AuditPage   `json:"audit,omitempty"`
	// Refusal says why there is no answer. It is sealed as well: it may say what there is.
	Refusal string `json:"refusal,omitempty"`
}

// LogPage is a part of what a task has printed.
type LogPage struct {
	Label  string `json:"label"` // the obligations on it
	Text   []byte `json:"text"`
	Before string `json:"before,omitempty"` // asks for the page before; empty: there is none
}

// AuditPage is a part of the audit log.
type AuditPage struct {
	Records []json.RawMessage `json:"records"` // [records.Record], oldest first
	// Before asks for the page before; 0: there is none.
	Before uint64 `json:"before,omitempty"`
	// Verified is when the monitor last verified the chain of the whole log; zero: it has not yet.
	Verified time.Time `json:"verified,omitzero"`
	// Fault is what the last verification has found; empty: nothing.
	Fault string `json:"fault,omitempty"`
}

// Question is the question that explain answers.
type Question struct {
	Pipeline  string `json:"pipeline,omitempty"` // may be empty when there is only one
	Principal string `json:"principal"`
	Region    string `json:"region,omitempty"`
	Conduit   string `json:"conduit"`        // "/corpus/public/17.txt"
	Access    string `json:"access"`         // "read" or "write"
	Task      string `json:"task,omitempty"` // empty: the task with parameters
}

// Explanation is a decision with its derivation.
type Explanation struct {
	Question   Question   `json:"question"`
	Allowed    bool       `json:"allowed"`
	Instance   string     `json:"instance"`
	Class      uint32     `json:"class,omitempty"`
	Policy     string     `json:"policy"`  // "friends(owner: \"alice\")"
	Taint      string     `json:"taint"`   // by which it was decided: "read of private(owner: \"alice\")"
	TaintOf    string     `json:"taintOf"` // "declared", or "of the program that runs as personal"
	Derivation Derivation `json:"derivation"`
	Conditions []string   `json:"conditions,omitempty"` // facts that the answer depends on
	Sentence   string     `json:"sentence"`             // the answer as a person would give it; "it" is the conduit
	// a command after which the access would be allowed, if only one fact is missing
	Remedy string `json:"remedy,omitempty"`
	// WouldDeny is set if the access is allowed only because the policies that forbid it,
	// for this reason, are in mode Audit or Warn.
	WouldDeny string `json:"wouldDeny,omitempty"`
	// Provisos say of a denial by what it can be allowed all the same: what the question leaves out, and the
	// pipeline's mode.
	Provisos []string `json:"provisos,omitempty"`
}

// InMode returns the explanation for a pipeline in a mode.
func (e Explanation) InMode(mode string) Explanation {
	if lets := InMode(mode); lets != "" && !e.Allowed {
		e.Provisos = append(e.Provisos, lets)
	}
	return e
}

// InMode says what the mode of a pipeline makes of what policies forbid, "" if it is denied.
func InMode(mode string) string {
	switch mode {
	case "audit":
		return "the pipeline is in mode audit, in which what is forbidden is recorded, and happens"
	case "baseline":
		return "the pipeline is in mode baseline, in which nothing is enforced"
	}
	return ""
}

// Derivation is one node of a proof, or of the failure to find one.
type Derivation struct {
	Statement string       `json:"statement"`
	Holds     bool         `json:"holds"`
	Source    string       `json:"source,omitempty"` // file:line:column of the clause or literal
	Because   []Derivation `json:"because,omitempty"`
}
