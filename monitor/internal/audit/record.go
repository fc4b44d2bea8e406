// SPDX-License-Identifier: BSD-2-Clause

// Package audit keeps the monitor's append-only, chained record of its decisions: one JSON
// object a line, each with the seal of the previous line and sealed with the monitor's key.
package audit

import (
	"time"

	"shai.dev/monitor/internal/audit/records"
)

// The records, which programs that cannot have a log know, too.
type (
	Kind    = records.Kind
	Event   = records.Event
	Removal = records.Removal
	Record  = records.Record
)

// The kinds of records.
const (
	Decision  = records.Decision
	Denial    = records.Denial
	Binding   = records.Binding
	Session   = records.Session
	Taint     = records.Taint
	Bundle    = records.Bundle
	Fact      = records.Fact
	Document  = records.Document
	Mode      = records.Mode
	Task      = records.Task
	Analysis  = records.Analysis
	Recovery  = records.Recovery
	Reading   = records.Reading
	Retention = records.Retention
)

// Kinds lists all kinds.
var Kinds = kinds[:]

var kinds = records.Kinds

// markOf returns a record's position in the chain.
func markOf(r Record) mark { return mark{r.Sequence, r.MAC + r.Hash} }

// Query selects records. Zero fields select all.
type Query struct {
	Kinds     []Kind
	Principal string
	Conduit   string // a path, or a prefix of one that ends in "/"
	Task      string
	Since     time.Time
	Before    uint64 // only records with smaller numbers; 0 means all
	Allowed   *bool
	Limit     int  // number of records, the latest; 0 means all
	Follow    bool // continue with new records as they are written
}

// Verification is the result of checking the chain.
type Verification struct {
	Records uint64 `json:"records"` // checked, up to the first fault
	Files   int    `json:"files"`
	// First is the number of the first record, and more than 1 if older ones were removed
	// to keep the log within its size.
	First uint64 `json:"first"`
	Last  string `json:"last"` // seal of the last good record
	// Unkeyed counts the records at the beginning that have a hash, and no seal with a key.
	Unkeyed uint64 `json:"unkeyed,omitempty"`
	// Fault names the first altered or missing record: file, line and what is wrong.
	// Empty if the chain is complete.
	Fault string `json:"fault,omitempty"`
}
