// SPDX-License-Identifier: BSD-2-Clause

// Package monitor is the reference monitor: it puts bundles in force, runs the offline
// analysis, updates what pipelines hold when facts change, and serves the API. Its pipelines
// (package pipeline) run the tasks and their sessions; they do not know the monitor.
package monitor

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/taskid"
)

// Options configure a monitor. All paths are absolute.
type Options struct {
	Data                       string            // the pipelines' files; "/corpus/x" in a manifest is Data/corpus/x
	State                      string            // catalog, view, audit log, task logs; same file system as Data
	Socket                     string            // unix socket of the HTTP API
	Listen                     string            // address of the HTTP API over mutual TLS; empty: none
	Certificate, Key, ClientCA string            // PEM files, needed with Listen
	Page                       string            // address of the page on the loopback network; empty: none
	Define                     map[string]string // values for $(NAME) in manifests
	Runtimes                   runtimeroot.Named // what tasks may execute and read beside their conduits
	Allowed                    allowlist.List    // sources of facts and sockets that manifests may name
	Library                    string            // directory that holds libshai.so
	Supervisor                 string            // the program shai-supervisor
	CPUs                       []int             // processors that tasks are pinned to; empty: all
	Secrets                    string            // file with the key-value store's secrets; empty: no confined store
	TaskIDs                    taskid.Registry   // users of tasks; empty: the default ones
	GiveData                   bool              // give documents to the group of the tasks that read them
	NoLearning                 bool              // capability sets do not grow while sessions use them
	NoIngest                   bool              // files are catalogued by Apply and Ingest only
	AuditSize                  int64             // bytes; the audit log removes its oldest records beyond; 0: 4 GiB
	Version                    string
	Logger                     *slog.Logger

	Sessions pipeline.SessionLimits // of each pipeline
}

// Monitor is a running reference monitor. Its exported methods implement api.Service and
// are safe for concurrent use.
type Monitor struct {
	options Options
	allowed allowlist.List // with the monitor's own store
	logger  *slog.Logger
	context context.Context // ends when the monitor stops
	backend sandbox.Backend
	machine sandbox.Report
	started time.Time

	catalog  *catalog.Catalog
	view     *catalog.View
	audit    *audit.Log
	verified verifications
	metrics  *metrics.Metrics
	services *pipeline.Services // all of that for the pipelines

	expiring     chan struct{} // tells watchExpiry that analyses have changed
	snapshotting chan struct{} // asks watchSnapshots for one
	stopWatch    context.CancelFunc
	watching     sync.WaitGroup

	// separatesTasks reports whether the tasks of a pipeline have different users. Only a
	// superuser's monitor asks.
	separatesTasks func() bool

	sources   *followed  // sources of facts that are fetched
	learner   *learner   // accesses that no analysis has foreseen
	postponed *postponed // classes on which analyses have not decided yet

	unstored  *unstored       // analyses that are newer than the stored ones
	overtaken map[string]bool // pipelines whose stored analysis was of an earlier state at the start
	pending   chan struct{}   // tells watchPending that analyses are not complete

	changing changes // one change of bundle, facts, documents or analysis at a time

	mu        sync.RWMutex
	bundle    *manifest.Bundle // nil before the first apply
	applied   time.Time
	pipelines map[string]*pipeline.Pipeline
	analyses  map[string]*analyzed     // by pipeline
	runs      map[string]*analysisRuns // by pipeline
}
