// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/factsource"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/wire"
)

// followed are the sources of the bundle in force from which facts are fetched, each with
// a goroutine of its own. It is safe for concurrent use.
type followed struct {
	monitor *Monitor
	running sync.WaitGroup

	mu      sync.Mutex
	sources map[string]*followedSource // by meaning.SourceID
}

// followedSource is one of the followed sources.
type followedSource struct {
	id, name string
	stop     context.CancelFunc
	begun    time.Time

	mu          sync.Mutex
	lastSuccess time.Time
	message     string
}

func newFollowed(m *Monitor) *followed {
	return &followed{monitor: m, sources: map[string]*followedSource{}}
}

// fetchUnknown fetches the facts of those sources that were never fetched. A bundle
// cannot be in force while such facts are unknown: policies would allow what they allow
// in the absence of a fact. Called with changing held.
func (m *Monitor) fetchUnknown(c *candidate) (map[string]catalog.Fetched, error) {
	fetched := map[string]catalog.Fetched{}
	var failures []error
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, one := range c.bundle.FactSources() {
		if !one.Spec.Fetched() {
			continue
		}
		source, err := m.openSource(c.bundle, one.Metadata.Name)
		if err != nil {
			return nil, err
		}
		id := meaning.SourceID(one)
		if _, known := m.catalog.Source(id); known {
			source.Close()
			continue
		}
		group.Go(func() {
			defer source.Close()
			update, err := source.Fetch(m.context, "")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, fmt.Errorf("FactSource %s: %w", one.Metadata.Name, err))
				return
			}
			fetched[id] = *update.Whole
		})
	}
	group.Wait()
	if len(failures) > 0 {
		slices.SortFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, api.Unavailable("apply", "make the source answer, or leave it out; nothing was changed",
			"%v", errors.Join(failures...))
	}
	return fetched, nil
}

// openSource prepares a source for fetching, if it is allowed.
func (m *Monitor) openSource(bundle *manifest.Bundle, name string) (factsource.Source, error) {
	spec, err := bundle.ResolveFactSource(name, m.options.Define)
	if err != nil {
		return nil, err
	}
	var login factsource.Login
	if spec.Redis != nil {
		if login, err = m.loginAt(spec.Redis.Socket); err != nil {
			return nil, err
		}
	}
	source, err := factsource.Open(spec, login, m.allowed)
	if err != nil {
		return nil, api.Invalid("apply", "", "FactSource %s: %v", name, err)
	}
	return source, nil
}

// loginAt returns how to authenticate at a store: as the administrator of the monitor's own
// confined store, elsewhere not at all.
func (m *Monitor) loginAt(socket string) (factsource.Login, error) {
	if m.options.Secrets == "" || !m.allowed.IsStore(socket) {
		return factsource.Login{}, nil
	}
	secrets, err := kvfilter.ReadSecrets(m.options.Secrets)
	return factsource.Login{Command: secrets.AuthCommand, User: secrets.Administrator, Password: secrets.Password}, err
}

// checkStores refuses pipelines with a store that the monitor may not connect to.
func (m *Monitor) checkStores(resolved map[string]*manifest.Resolved) error {
	for _, name := range slices.Sorted(maps.Keys(resolved)) {
		spec := resolved[name].Pipeline.Spec
		if spec.KeyValue == nil {
			continue
		}
		if err := m.allowed.Store(spec.KeyValue.Socket, spec.Mode != wire.ModeBaseline.String()); err != nil {
			return fmt.Errorf("pipeline %s: spec.keyValue.socket: %w", name, err)
		}
	}
	return nil
}

// turnTo follows the sources of a bundle (none if it is nil), and no others. The sources
// in fetched have just been fetched. It does not wait for the goroutines of the sources
// that it stops: they may be waiting for the caller's lock.
func (f *followed) turnTo(bundle *manifest.Bundle, fetched map[string]catalog.Fetched) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := map[string]*followedSource{}
	var begun []*followedSource
	if bundle != nil {
		for _, one := range bundle.FactSources() {
			if !one.Spec.Fetched() {
				continue
			}
			id := meaning.SourceID(one)
			if next[id] = f.sources[id]; next[id] == nil {
				next[id] = &followedSource{id: id, name: one.Metadata.Name, begun: time.Now()}
				if _, fresh := fetched[id]; fresh {
					next[id].lastSuccess = time.Now()
				}
				begun = append(begun, next[id])
			}
		}
	}
	for id, s := range f.sources {
		if next[id] == nil {
			s.stop()
		}
	}
	f.sources = next
	f.monitor.metrics.FollowSources(namesOf(next))
	for _, s := range begun {
		ctx, stop := context.WithCancel(f.monitor.context)
		s.stop = stop
		f.running.Go(func() { f.follow(ctx, s) })
	}
}

// close stops following all sources and waits until their goroutines have ended.
func (f *followed) close() {
	f.turnTo(nil, nil)
	f.running.Wait()
}

// Waiting times after failures double until they reach the longest.
const (
	firstRetry   = time.Second
	longestRetry = time.Minute
)

// follow fetches from a source until ctx ends.
func (f *followed) follow(ctx context.Context, s *followedSource) {
	var source factsource.Source
	defer func() {
		if source != nil {
			source.Close()
		}
	}()
	var last [sha256.Size]byte // digest of the last complete fetch
	retry := firstRetry
	for {
		var err error
		if source == nil {
			source, err = f.open(s)
		}
		if err == nil {
			err = f.fetch(ctx, s, source, &last)
		}
		if ctx.Err() != nil {
			return
		}
		s.note(err)
		wait := time.Duration(0)
		if source != nil {
			wait = source.Pause()
		}
		if err == nil {
			retry = firstRetry
		} else {
			f.monitor.metrics.FetchFailed(s.name)
			f.monitor.logger.Warn("facts are not up to date", "source", s.name, "error", err)
			if wait == 0 {
				wait, retry = retry, min(2*retry, longestRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (f *followed) open(s *followedSource) (factsource.Source, error) {
	m := f.monitor
	return m.openSource(m.currentBundle(), s.name)
}

// fetch applies the changes of a source.
func (f *followed) fetch(ctx context.Context, s *followedSource, source factsource.Source,
	last *[sha256.Size]byte) error {
	m := f.monitor
	status, known := m.catalog.Source(s.id)
	if !known {
		return errors.New("the bundle in force has no such source")
	}
	update, err := source.Fetch(ctx, status.Position)
	if err != nil || update.Empty() {
		return err
	}
	var now [sha256.Size]byte
	if update.Whole != nil {
		if now = digest(*update.Whole); now == *last {
			return nil
		}
	}
	fetched := time.Now()
	m.changing.Lock()
	defer m.changing.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Not ctx: if the update of the capability sets was interrupted, all would be
	// dropped.
	_, err = m.changeFacts(m.context, fetched, func(w catalog.Writer) (*catalog.Change, error) {
		if update.Whole != nil {
			return w.ReplaceSource(s.id, *update.Whole)
		}
		return w.ChangeSource(s.id, update.Position, update.Steps)
	})
	if err == nil {
		*last = now
	}
	return err
}

// digest returns a hash of what was fetched that does not depend on its order.
func digest(fetched catalog.Fetched) (sum [sha256.Size]byte) {
	lines := make([]string, 0, len(fetched.Facts))
	for _, fact := range fetched.Facts {
		line, err := json.Marshal([]any{fact.Conduit, fact.Relation, fact.Arguments})
		if err != nil {
			bug.Found("a fact cannot be rendered: %v", err)
		}
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", fetched.Position)
	for _, line := range lines {
		hash.Write([]byte(line + "\n"))
	}
	hash.Sum(sum[:0])
	return sum
}

// note records the result of a fetch.
func (s *followedSource) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.message = err.Error()
		return
	}
	s.lastSuccess, s.message = time.Now(), ""
}

// status lists the sources by name.
func (f *followed) status() []api.FactSourceStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []api.FactSourceStatus
	for id, s := range f.sources {
		known, _ := f.monitor.catalog.Source(id)
		s.mu.Lock()
		status := api.FactSourceStatus{Name: s.name, Tuples: known.Facts, Message: s.message}
		if !s.lastSuccess.IsZero() {
			at := s.lastSuccess
			status.LastSuccess = &at
		}
		s.mu.Unlock()
		list = append(list, status)
	}
	slices.SortFunc(list, func(a, b api.FactSourceStatus) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func namesOf(sources map[string]*followedSource) []string {
	var names []string
	for _, s := range sources {
		names = append(names, s.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// read writes for how long facts were not fetched, and whether that is since fetches fail.
func (f *followed) read(to *metrics.Sheet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sources {
		s.mu.Lock()
		since, failing := s.lastSuccess, 0.0
		if s.message != "" {
			failing = 1
		}
		s.mu.Unlock()
		if since.IsZero() {
			since = s.begun
		}
		to.Set(f.monitor.metrics.FactSourceAge, time.Since(since).Seconds(), s.name)
		to.Set(f.monitor.metrics.FactSourceFailing, failing, s.name)
	}
}
