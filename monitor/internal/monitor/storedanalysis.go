// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
)

// analysisPrefix begins the names of stored analyses in the state directory.
const analysisPrefix = "analysis-"

func (m *Monitor) analysisPath(pipeline string) string {
	return filepath.Join(m.options.State, analysisPrefix+pipeline)
}

// storeAnalysis replaces the stored result. A crash leaves the old file or the new one.
func storeAnalysis(path string, result *analysis.Result) error {
	if err := replaceFile(path, result.Encode()); err != nil {
		return fmt.Errorf("store analysis %s: %w; it is in force, but a restart of the monitor forgets it", path, err)
	}
	return nil
}

func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails, as intended, once the file has been renamed
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// unstored knows which results are newer than the stored ones. A result is large, and a change of
// a fact small: so results that follow changes are stored later, and only when the monitor has
// time. What a crash forgets is found again: see catchUp. It is safe for concurrent use.
type unstored struct {
	wake chan struct{}

	mu    sync.Mutex
	names map[string]bool // pipelines
}

func newUnstored() *unstored {
	return &unstored{wake: make(chan struct{}, 1), names: map[string]bool{}}
}

// add notes that a pipeline has a newer result. It never blocks for long.
func (u *unstored) add(name string) {
	u.mu.Lock()
	u.names[name] = true
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default: // the last one is still pending
	}
}

func (u *unstored) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	names := slices.Sorted(maps.Keys(u.names))
	clear(u.names)
	return names
}

// Results are stored when none has changed for storeAfter, and in any case when storeAtLatest
// has passed since the first change.
const (
	storeAfter    = 2 * time.Second
	storeAtLatest = time.Minute
)

// watchUnstored stores results until ctx ends.
func (m *Monitor) watchUnstored(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.unstored.wake:
		}
		m.awaitQuiet(ctx)
		if ctx.Err() == nil {
			m.storeAll()
		}
	}
}

// awaitQuiet returns when results should be stored, or ctx ends.
func (m *Monitor) awaitQuiet(ctx context.Context) {
	latest := time.After(storeAtLatest)
	for {
		select {
		case <-ctx.Done():
			return
		case <-latest:
			return
		case <-time.After(storeAfter):
			return
		case <-m.unstored.wake:
		}
	}
}

// storeAll stores the results that are newer than the stored ones. Those to which accesses will
// still be added follow when they are complete.
func (m *Monitor) storeAll() {
	for _, name := range m.unstored.take() {
		m.mu.RLock()
		known := m.analyses[name]
		m.mu.RUnlock()
		if known == nil || known.result == nil || known.result.Pending() {
			continue
		}
		if err := storeAnalysis(m.analysisPath(name), known.result); err != nil {
			m.logger.Error("the next start of the monitor analyses the pipeline again", "pipeline", name, "error", err)
		}
	}
}

// catchUp analyses the pipelines again whose stored result is of an earlier state, or damaged: the
// monitor was killed before it could store what followed. In the meantime it decides on their accesses
// when they happen.
func (m *Monitor) catchUp(ctx context.Context) {
	m.changing.Lock()
	defer m.changing.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.overtaken)) {
		m.mu.RLock()
		p, known := m.pipelines[name], m.analyses[name]
		m.mu.RUnlock()
		if p == nil || known != nil || ctx.Err() != nil {
			continue // it is gone, or was analysed in the meantime
		}
		request := api.AnalyzeRequest{Pipeline: name, Scope: api.ScopeAll}
		if _, err := m.analyze(ctx, p, request, func(api.Progress) {}); err != nil && ctx.Err() == nil {
			m.logger.Error("the pipeline is not analysed: until shai analyze succeeds, the monitor decides on its accesses "+
				"when they happen", "pipeline", name, "error", err)
		}
	}
	clear(m.overtaken)
}

// storedAnalysis returns the stored result. It returns nil if there is none, or if it is
// of another plan or state, with overtaken set. A damaged file is an error, and overtaken, too.
func storedAnalysis(path string, plan *analysis.Plan, state *catalog.State) (result *analysis.Result, overtaken bool,
	err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("load analysis: %w", err)
	}
	result, err = analysis.Decode(content, plan, state)
	if errors.Is(err, analysis.ErrStale) {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("load analysis %s: %w", path, err)
	}
	return result, false, nil
}
