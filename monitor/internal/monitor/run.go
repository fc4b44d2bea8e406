// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/page"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/sandbox"
)

// Run runs the monitor: it recovers the durable state, serves until ctx ends, and then
// stops every task. It returns nil after a clean stop.
func Run(ctx context.Context, options Options) (err error) {
	m, err := Open(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return m.serveAPI(ctx)
}

// Open recovers a monitor's state and prepares its pipelines. It starts no task. The
// caller must call Close. The program must call [catalog.CheckMain] first.
func Open(ctx context.Context, options Options) (_ *Monitor, err error) {
	if len(options.CPUs) > 0 {
		// The monitor serves only these tasks: more threads than the tasks have
		// processors would only take turns.
		runtime.GOMAXPROCS(len(options.CPUs))
	}
	m := newMonitor(ctx, options)
	if err := dropGroups(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if err := makeState(options.State); err != nil {
		return nil, err
	}
	if err := m.openAuditLog(); err != nil {
		return nil, err
	}
	if err := m.endOrphans(); err != nil {
		return nil, err
	}
	m.awaitSupervisors()
	if err := m.openCatalog(ctx); err != nil {
		return nil, err
	}
	if err := m.openServices(); err != nil {
		return nil, err
	}
	if err := m.recover(ctx); err != nil {
		return nil, err
	}
	m.sources.turnTo(m.bundle, nil)
	watch, stop := context.WithCancel(ctx)
	m.stopWatch = stop
	m.watching.Go(func() { m.watchExpiry(watch) })
	m.watching.Go(func() { m.watchPending(watch) })
	m.watching.Go(func() { m.watchUnstored(watch) })
	m.watching.Go(func() { m.catchUp(watch) })
	m.watching.Go(func() { m.watchSnapshots(watch) })
	m.watching.Go(func() { m.watchUnforeseen(watch) })
	if !options.NoLearning {
		m.watching.Go(func() { m.watchPostponed(watch) })
	}
	if !options.NoIngest {
		m.watching.Go(func() { m.watchIngress(watch) })
	}
	log := m.audit
	m.watching.Go(func() { m.watchAudit(watch, log) })
	return m, nil
}

// storeVariable is the variable with the socket of the monitor's own key-value store. Only who
// starts the monitor defines it: a pipeline's own variables do not count.
const storeVariable = "REDIS_SOCKET"

// newMonitor returns a monitor whose files are not open yet.
func newMonitor(ctx context.Context, options Options) *Monitor {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	options.TaskIDs = options.TaskIDs.OrDefault()
	backend := sandbox.New(sandbox.Options{Supervisor: options.Supervisor})
	m := &Monitor{
		options: options, logger: options.Logger, context: ctx, backend: backend, machine: backend.Probe(),
		allowed:  options.Allowed.WithStore(options.Define[storeVariable]),
		started:  time.Now(),
		metrics:  metrics.New(),
		expiring: make(chan struct{}, 1), snapshotting: make(chan struct{}, 1),
		pipelines: map[string]*pipeline.Pipeline{}, analyses: map[string]*analyzed{},
		runs: map[string]*analysisRuns{}, learner: newLearner(), postponed: newPostponed(),
		unstored: newUnstored(), overtaken: map[string]bool{}, pending: make(chan struct{}, 1),
	}
	m.sources = newFollowed(m)
	m.separatesTasks = sync.OnceValue(m.findSeparation)
	m.metrics.ReadFrom(m.read)
	return m
}

func (m *Monitor) openAuditLog() (err error) {
	m.audit, err = audit.Open(audit.Options{
		Directory: filepath.Join(m.options.State, auditFolder), MaxSize: m.options.AuditSize, RefuseUnrecorded: true,
	})
	if err != nil {
		return err
	}
	if recovered := m.audit.Recovery(); recovered != "" {
		m.logger.Warn("audit log was repaired", "what", recovered)
	}
	return nil
}

// openCatalog opens the catalog and the view of its documents.
func (m *Monitor) openCatalog(ctx context.Context) (err error) {
	if err := checkCatalog(ctx, m.options.State); err != nil {
		return err
	}
	if m.catalog, err = catalog.Open(filepath.Join(m.options.State, catalogFolder)); err != nil {
		return err
	}
	root, err := viewDirectory(m.options.State)
	if err != nil {
		return err
	}
	if m.view, err = m.catalog.AttachView(m.options.Data, root); err != nil {
		return err
	}
	m.view.ReadBy(m.readers())
	return m.watchDocuments()
}

// openServices prepares what the pipelines use.
func (m *Monitor) openServices() error {
	o := m.options
	m.services = &pipeline.Services{
		Options: pipeline.Options{
			Data: o.Data, State: o.State, Library: o.Library, Secrets: o.Secrets, Define: o.Define, CPUs: o.CPUs,
			Runtimes: o.Runtimes, Allowed: m.allowed, GiveData: o.GiveData, Sessions: o.Sessions,
		},
		Logger: m.logger, Context: m.context, Backend: m.backend, Enforcement: m.machine.Enforcement,
		Catalog: m.catalog, View: m.view, Audit: m.audit, Metrics: m.metrics, Guarded: m.guardedNow,
		DataOfOthers: m.recordedByOthers(), Log: m.addToLog, Choosing: choosing{m},
	}
	if !o.NoLearning {
		m.services.Unforeseen = m.unforeseen
	}
	return m.services.Open()
}

// viewDirectory finds or makes the directory of the view. Its name is random, because it
// is in every worker's perimeter: a worker must not be able to name it before its user is
// known (docs/enforcement.md, "Limits").
func viewDirectory(state string) (string, error) {
	found, err := filepath.Glob(filepath.Join(state, "view-*"))
	if err != nil {
		return "", fmt.Errorf("find view: %w", err)
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		return "", fmt.Errorf("find view: %s holds %d of them; remove all but the one that was written last", state,
			len(found))
	}
	var name [16]byte
	if _, err := rand.Read(name[:]); err != nil {
		return "", fmt.Errorf("name view: %w", err)
	}
	return filepath.Join(state, "view-"+hex.EncodeToString(name[:])), nil
}

// recover restores the bundle that was in force.
func (m *Monitor) recover(ctx context.Context) error {
	stored := m.state().Bundle()
	if stored.Version == 0 {
		return nil
	}
	bundle, err := manifest.Restore(stored.Manifest)
	if err != nil {
		return fmt.Errorf("recover bundle: %w", err)
	}
	resolved, err := m.resolve(bundle)
	if err != nil {
		return fmt.Errorf("recover bundle: %w", err)
	}
	m.services.RefreshRegions()
	for name, one := range resolved {
		means, err := meaning.Of(bundle, one)
		if err != nil {
			return err
		}
		p, err := pipeline.New(m.services, pipeline.Definition{Resolved: one, Meaning: means, Bind: m.state().Bind})
		if err != nil {
			return fmt.Errorf("recover pipeline %s: %w", name, err)
		}
		m.mu.Lock() // documents are watched already
		m.pipelines[name] = p
		m.mu.Unlock()
	}
	if err := m.assignUsers(m.pipelines); err != nil {
		return fmt.Errorf("recover bundle: %w", err)
	}
	repairs, err := m.view.Verify(ctx, nil)
	if err != nil {
		return fmt.Errorf("recover view: %w", err)
	}
	m.refusedDocuments(repairs)
	m.reportUnreadable()
	m.followLogs()
	m.bundle, m.applied = bundle, time.Now()
	for _, p := range m.pipelines {
		if err := m.loadAnalysis(p); err != nil {
			// Not fatal: without a result, every access is decided when it happens. catchUp follows.
			m.logger.Warn("stored analysis is not used", "pipeline", p.Name(), "error", err)
		}
	}
	return nil
}

// serveAPI serves the HTTP API until ctx ends.
func (m *Monitor) serveAPI(ctx context.Context) error {
	handler := api.Handler{
		Service: m, Audit: m.audit,
		Metrics: m.metrics.Handler(),
		Page:    page.New(m.pageSource(), nil),
	}
	listeners, err := api.Endpoints{
		Socket: m.options.Socket, Listen: m.options.Listen,
		Certificate: m.options.Certificate, Key: m.options.Key, ClientCA: m.options.ClientCA,
	}.Open()
	if err != nil {
		return err
	}
	endPage, err := m.servePage(ctx)
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	m.logger.Info("ready", "socket", m.options.Socket)
	return errors.Join(api.Serve(ctx, listeners, handler.Mux()), endPage())
}

// Close stops every task and releases all resources.
func (m *Monitor) Close() error {
	m.sources.close()
	if m.stopWatch != nil {
		m.stopWatch()
		m.watching.Wait()
		m.storeAll()
	}
	ctx, cancel := context.WithTimeout(context.Background(), pipeline.StopTimeout)
	defer cancel()
	for _, p := range m.pipelines {
		p.Shutdown(ctx)
	}
	var failures []error
	if m.services != nil {
		failures = append(failures, m.services.Close())
	}
	if m.view != nil {
		failures = append(failures, m.view.Close())
	}
	if m.catalog != nil {
		failures = append(failures, m.catalog.Close())
	}
	if m.audit != nil {
		failures = append(failures, m.audit.Close())
	}
	return errors.Join(failures...)
}

func (m *Monitor) state() *catalog.State { return m.catalog.State() }
