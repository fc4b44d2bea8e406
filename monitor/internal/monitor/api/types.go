// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"time"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/reading"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// ApplyRequest carries manifests as the user wrote them, so that the monitor's errors
// refer to lines of the user's own files.
type ApplyRequest struct {
	Sources []manifest.Source `json:"sources"`
	DryRun  bool              `json:"dryRun,omitempty"`
	Prune   bool              `json:"prune,omitempty"` // remove objects that the sources do not name
	// the sender's name for the bundle, at most 256 bytes; shown in status
	Label string `json:"label,omitempty"`
}

// ApplyResult describes what an apply did, or would do.
type ApplyResult struct {
	Version  uint64         `json:"version"` // of the bundle now in force, counted from 1
	Hash     string         `json:"hash"`    // its SHA-256, lower-case hex
	DryRun   bool           `json:"dryRun,omitempty"`
	Objects  []ObjectChange `json:"objects"`
	Warnings []string       `json:"warnings,omitempty"`
}

// ObjectChange is one object of an apply.
type ObjectChange struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change string `json:"change"` // "created", "configured", "unchanged" or "pruned"
}

// Status is the state of one monitor.
type Status struct {
	Version   string            `json:"version"` // of the program
	Started   time.Time         `json:"started"`
	Ready     bool              `json:"ready"`
	Reason    string            `json:"reason,omitempty"` // why it is not ready
	Machine   sandbox.Report    `json:"machine"`
	Bundle    *BundleStatus     `json:"bundle,omitempty"` // nil before the first apply
	Pipelines []PipelineStatus  `json:"pipelines"`
	Counters  map[string]uint64 `json:"counters"` // by metric name, without labels

	FactSources []FactSourceStatus `json:"factSources,omitempty"` // sources from which facts are fetched
}

// FactSourceStatus is the state of a source from which facts are fetched. While fetches
// fail, the facts of the last successful one stay in force.
type FactSourceStatus struct {
	Name        string     `json:"name"`
	Tuples      uint64     `json:"tuples"`                // tuples that exist because of it
	LastSuccess *time.Time `json:"lastSuccess,omitempty"` // nil: none since the monitor's start
	Message     string     `json:"message,omitempty"`     // why the last fetch failed
}

// BundleStatus identifies the bundle in force.
type BundleStatus struct {
	Version uint64    `json:"version"`
	Hash    string    `json:"hash"`
	Applied time.Time `json:"applied"`
	Objects int       `json:"objects"`
	Label   string    `json:"label,omitempty"` // from the last apply
}

// PipelineStatus is the state of one pipeline.
type PipelineStatus struct {
	Name         string          `json:"name"`
	Mode         string          `json:"mode"`
	Revocation   string          `json:"revocation"`
	Conduits     uint64          `json:"conduits"` // files, tuples and connections known
	Classes      uint64          `json:"classes"`
	Tasks        []TaskStatus    `json:"tasks"`
	Sessions     []SessionStatus `json:"sessions"` // at most 100
	SessionTotal int             `json:"sessionTotal"`
	LastAnalysis *AnalysisRun    `json:"lastAnalysis,omitempty"` // nil: none since the monitor started
	// user of its files, whose rights its tasks have, and group of its tasks; 0: the monitor's own
	User uint32 `json:"user,omitempty"`
	// documents that the tasks' user cannot read, directories that it cannot list, and the remedy
	Unreadable []string `json:"unreadable,omitempty"`
}

// AnalysisRun describes how the last run of the offline analysis ended. After a failed
// run, the previous result stays in force, as far as it fits the current state.
type AnalysisRun struct {
	Bundle    uint64    `json:"bundle"` // version analysed
	Hash      string    `json:"hash"`   // of that bundle
	Scope     string    `json:"scope"`  // "all" or "active"
	Started   time.Time `json:"started"`
	Succeeded bool      `json:"succeeded"`
	Message   string    `json:"message,omitempty"` // why it failed
}

// TaskStatus is the state of one task.
type TaskStatus struct {
	Name        string     `json:"name"`
	Run         string     `json:"run"`   // "Once", "Always" or, if other tasks become it, "Raised"
	State       string     `json:"state"` // "Stopped", "Starting", "Running", "Succeeded" or "Failed"
	Enforcement string     `json:"enforcement"`
	PID         int        `json:"pid,omitempty"`
	User        uint32     `json:"user,omitempty"`    // that its program runs as; 0: the monitor's own
	Since       *time.Time `json:"since,omitempty"`   // when its program started, or has ended
	Message     string     `json:"message,omitempty"` // how it ended, or why it does not start
	// since the task was started: how often its program ended and was to start again, and how it ended the last time
	Restarts int    `json:"restarts,omitempty"`
	LastEnd  string `json:"lastEnd,omitempty"`
	Output   string `json:"output,omitempty"` // the label of what it prints: the obligations on it
	// of a task that runs once: it has succeeded, in its last run or an earlier one
	Completed bool     `json:"completed,omitempty"`
	LastRun   *TaskRun `json:"lastRun,omitempty"` // the present or last one; nil: none
}

// SessionStatus is one live session of a worker.
type SessionStatus struct {
	Instance  string    `json:"instance"` // "worker(alice, de)"
	Task      string    `json:"task"`
	Principal string    `json:"principal,omitempty"` // empty until it has authenticated
	Region    string    `json:"region"`
	Peer      string    `json:"peer"`
	Slot      int       `json:"slot"`
	Mode      string    `json:"mode"`
	Since     time.Time `json:"since"`
}

// Question is the question that explain answers.
type Question = reading.Question

// Explanation is a decision with its derivation.
type Explanation = reading.Explanation

// Derivation is one node of a proof, or of the failure to find one.
type Derivation = reading.Derivation

// ReadersRequest asks who may access a conduit.
type ReadersRequest struct {
	Pipeline string `json:"pipeline,omitempty"` // may be empty when there is only one
	Conduit  string `json:"conduit"`
	Access   string `json:"access"` // "read" or "write"
	Limit    int    `json:"limit"`  // of the list, from 1 to MaxReaders
}

// MaxReaders is the most users that one answer lists.
const MaxReaders = 1000

// Readers says who may access a conduit by the last analysis, and so at native speed. Users
// that no expectation of the pipeline names may have access, too.
type Readers struct {
	Pipeline string    `json:"pipeline"`
	Conduit  string    `json:"conduit"`
	Access   string    `json:"access"`
	Policy   string    `json:"policy"`
	Analyzed time.Time `json:"analyzed"` // when the analysis ran, or was last brought up to date
	// Current is false if the bundle or the facts have changed since and the analysis does
	// not reflect it yet.
	Current bool     `json:"current"`
	Total   int      `json:"total"`   // users of each task, and tasks without users
	Readers []Reader `json:"readers"` // the first of them, by task, then user
	// Unlisted says why others may have access, too, who are not counted; "" if nothing is known.
	Unlisted string `json:"unlisted,omitempty"`
}

// Reader is a user of a task, or a task without users.
type Reader struct {
	Task      string   `json:"task"`
	Principal string   `json:"principal,omitempty"`
	Regions   []string `json:"regions,omitempty"` // from which the user has access
}

// Fact is one tuple in a conduit: Conduit says Says(Tuple…).
type Fact struct {
	Conduit string       `json:"conduit"`
	Says    string       `json:"says"`
	Tuple   policy.Tuple `json:"tuple"` // without wildcards
}

// FactChange is one atomic change of the state.
type FactChange struct {
	Remove []Fact `json:"remove,omitempty"`
	Add    []Fact `json:"add,omitempty"`
}

// FactResult describes what a change of facts did.
type FactResult struct {
	Removed              int   `json:"removed"` // tuples that existed and no longer do
	Added                int   `json:"added"`   // tuples that did not exist before
	Instances            int   `json:"instances"`
	SessionsReset        int   `json:"sessionsReset"`
	DurationMicroseconds int64 `json:"durationMicroseconds"`
	// Warnings say what could not follow the change. The change itself is in force.
	Warnings []string `json:"warnings,omitempty"`
}
