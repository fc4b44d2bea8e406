// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/monitor/api"
)

// watchIngress lets the catalog follow the files of ingress conduits, until ctx ends.
func (m *Monitor) watchIngress(ctx context.Context) {
	m.view.Follow(ctx, func(names []string) error {
		_, err := m.ingest(names)
		return err
	}, func(err error) {
		m.logger.Error("some documents are not catalogued as they are; the next sweep tries again", "error", err)
	})
}

// ingest catalogues files as they are now. Sessions do not wait for it: what is in a class that
// the analysis knows can be read natively at once, and accesses to a new class are decided when
// they happen until the analysis has followed. It does not wait for an analysis that is computed.
func (m *Monitor) ingest(names []string) (catalog.Ingested, error) {
	begun := time.Now()
	m.changing.lockDocuments()
	defer m.changing.unlockDocuments()
	done, err := m.view.Ingest(names)
	if done.Change != nil {
		m.followTaken(done.Change) // first: what comes in the same step is newer than what is lost by it
		m.endStale(done.Change)
		m.postpone(done.Change)
		m.changing.note(done.Change)
	}
	m.countIngested(done, time.Since(begun))
	m.recordIngested(done)
	if errors.Is(err, catalog.ErrView) {
		m.logger.Warn("some documents are catalogued, but cannot be read", "error", err)
		err = nil
	}
	return done, err
}

// countIngested counts a step, and its time unless nothing was to be done.
func (m *Monitor) countIngested(done catalog.Ingested, took time.Duration) {
	m.metrics.CountIngested(metrics.Ingested{Added: len(done.Added), Renewed: len(done.Renewed),
		Removed: len(done.Removed), Refused: len(done.Refused)})
	if done.Change != nil {
		m.metrics.Ingest.Observe(took.Seconds())
	}
}

// recordIngested writes one record of a step. A thousand documents a second must not drive
// everything else out of the log.
func (m *Monitor) recordIngested(done catalog.Ingested) {
	changed := slices.Concat(done.Added, done.Renewed, done.Removed)
	event := audit.Event{Kind: audit.Document, Operation: "ingest", Allowed: true,
		Reason: fmt.Sprintf("added: %d, renewed: %d, removed: %d", len(done.Added), len(done.Renewed), len(done.Removed))}
	if len(changed) == 1 {
		event.Conduit = changed[0]
	}
	if len(changed) > 0 {
		m.record(event)
	}
	if len(done.Refused) > 0 {
		first := done.Refused[0]
		m.record(audit.Event{Kind: audit.Denial, Operation: "ingest", Conduit: first.Name,
			Reason: fmt.Sprintf("%s; refused with it: %d", first.Reason, len(done.Refused)-1)})
	}
}

// Ingest implements [api.Service].
func (m *Monitor) Ingest(ctx context.Context, request api.IngestRequest, progress func(api.Progress)) (api.IngestResult,
	error) {
	begun := time.Now()
	m.view.Settle()
	run := &ingestRun{monitor: m, request: request, progress: progress}
	for _, one := range request.Paths {
		if err := run.path(ctx, one); err != nil {
			return api.IngestResult{}, err
		}
	}
	if err := run.flush(); err != nil {
		return api.IngestResult{}, err
	}
	run.result.DurationMicroseconds = time.Since(begun).Microseconds()
	return run.result, nil
}

// ingestRun is one request.
type ingestRun struct {
	monitor  *Monitor
	request  api.IngestRequest
	progress func(api.Progress)
	pending  []string
	done     uint64
	result   api.IngestResult
}

// path takes one path: a file, or a directory with all beneath it.
func (r *ingestRun) path(ctx context.Context, given string) error {
	name := r.monitor.conduitName(given)
	isThere, isDirectory := r.monitor.view.Find(name)
	switch {
	case r.request.Remove && isThere && !isDirectory:
		r.refuse(given, "it still exists; remove the file, and the catalog follows")
	case r.request.Remove:
		registered := r.monitor.view.Registered(name)
		if len(registered) == 0 {
			r.refuse(given, "no document is catalogued under this name")
		}
		return r.files(registered)
	case isDirectory:
		if err := r.flush(); err != nil {
			return err
		}
		return r.monitor.view.ScanTree(ctx, strings.TrimPrefix(name, "/"), r.ingest)
	case !isThere:
		r.refuse(given, "there is no such file beneath the data directory; if it was removed, give --remove")
	default:
		return r.files([]string{name})
	}
	return nil
}

func (r *ingestRun) refuse(name, reason string) {
	r.result.RefusedTotal++
	if len(r.result.Refused) < api.MaxRefused {
		r.result.Refused = append(r.result.Refused, api.RefusedDocument{Path: name, Reason: reason})
	}
}

// files takes files. They are ingested in batches.
func (r *ingestRun) files(names []string) error {
	for _, name := range names {
		if r.pending = append(r.pending, name); len(r.pending) == catalog.MaxIngest {
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *ingestRun) flush() error {
	names := r.pending
	r.pending = nil
	if len(names) == 0 {
		return nil
	}
	return r.ingest(names)
}

func (r *ingestRun) ingest(names []string) error {
	done, err := r.monitor.ingest(names)
	if err != nil {
		return api.Unavailable("ingest", "correct the cause and try again; what was counted before is catalogued", "%v", err)
	}
	r.result.Added += len(done.Added)
	r.result.Renewed += len(done.Renewed)
	r.result.Removed += len(done.Removed)
	r.result.Unchanged += done.Unchanged
	for _, one := range done.Refused {
		r.refuse(one.Name, one.Reason)
	}
	r.done += uint64(len(names))
	r.progress(api.Progress{Phase: "documents", Done: r.done})
	return nil
}

// conduitName returns the name of the conduit that a path means: in a pipeline, or on this
// machine.
func (m *Monitor) conduitName(given string) string {
	if rest, isBeneath := strings.CutPrefix(given, m.options.Data+"/"); isBeneath {
		given = rest
	}
	return path.Join("/", given)
}

// endStale ends sessions that keep, by lazy revocation, a class into which documents have come:
// they must not read what is newer than the loss. Called with a change of documents begun.
func (m *Monitor) endStale(change *catalog.Change) {
	var classes []uint32
	for _, move := range change.Moved {
		if move.From == 0 {
			classes = append(classes, move.To)
		}
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	for _, p := range m.pipelines {
		if !p.HasStale(classes) {
			continue
		}
		m.services.Binding.Lock()
		p.EndStale(classes)
		p.Fence() // without RetireUsers: an analysis may have made users for sets that are not in force yet
		m.services.Binding.Unlock()
	}
}

// followTaken lets what rests on a conduit that has gone follow at once. Called with a change of
// documents begun.
func (m *Monitor) followTaken(change *catalog.Change) {
	if !change.Taken {
		return
	}
	defer m.outdate()()
	m.services.Binding.Lock()
	_, err := m.followConduits(m.context, change)
	m.services.Binding.Unlock()
	if err != nil {
		m.logger.Error("the monitor decides on what rests on a document that has gone when it happens", "error", err)
	}
	for _, p := range m.pipelines {
		p.Fence() // without RetireUsers, as in endStale
	}
}

// followConduits takes the accesses that rest on a conduit which has gone, or has another policy
// now, and returns the number of sessions that have ended. Called with changing and Binding held.
func (m *Monitor) followConduits(ctx context.Context, change *catalog.Change) (reset int, err error) {
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(m.pipelines)) {
		m.pipelines[name].Follow(change)
		if known := m.analyses[name]; known != nil && known.result != nil && known.result.RestsOn(change) {
			ending, err := m.putInForce(m.follow(ctx, name, change))
			ending.Wait()
			failures = append(failures, err)
			reset += len(ending)
		}
	}
	return reset, errors.Join(failures...)
}

// postpone lets the analyses go on with a state that has other classes, and leaves the decisions
// on these to watchPostponed. Called with changing held, or a change of documents begun.
func (m *Monitor) postpone(change *catalog.Change) {
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		known := m.analyses[name]
		if next := m.postponed.follow(name, known.result, change); next != known.result {
			m.setAnalysis(name, &analyzed{plan: known.plan, result: next, report: known.report})
		}
	}
}
