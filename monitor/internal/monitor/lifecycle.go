// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/wire"
)

// startTask starts a task, and before it whatever the task needs.
func (p *pipeline) startTask(ctx context.Context, name string) error {
	if err := p.openKeyValue(ctx); err != nil {
		return err
	}
	if err := p.installStored(ctx); err != nil {
		return err
	}
	return p.tasks[name].start(ctx)
}

// installStored prepares the capability sets of an analysis that was taken up when
// the monitor started: only now is the key-value store sure to be there.
func (p *pipeline) installStored(ctx context.Context) error {
	p.mu.Lock()
	prepared := len(p.sets) > 0
	p.mu.Unlock()
	p.monitor.mu.RLock()
	known := p.monitor.analyses[p.name]
	p.monitor.mu.RUnlock()
	if prepared || known == nil || known.result == nil || known.plan != p.plan || !known.result.Current(p.monitor.state()) {
		return nil
	}
	// Some access may have ended since it was stored.
	result, _, err := known.result.Expire(ctx, analysis.Options{Now: time.Now()})
	if err != nil {
		return fmt.Errorf("bring the stored analysis of pipeline %s up to date: %w; run shai analyze", p.name, err)
	}
	p.monitor.setAnalysis(p.name, &analysed{plan: known.plan, result: result, report: known.report})
	return p.install(ctx, result, func(api.Progress) {})
}

// openKeyValue connects to the confined key-value store as its administrator, once.
// A pipeline without tuples needs none; in mode baseline the task connects itself.
func (p *pipeline) openKeyValue(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keyValue != nil || p.spec.KeyValue == nil || p.currentMode() == wire.ModeBaseline {
		return nil
	}
	secrets, err := readSecrets(p.monitor.options.Secrets)
	if err != nil {
		return err
	}
	store, err := kvfilter.Open(ctx, p.spec.KeyValue.Socket, secrets)
	if err != nil {
		return fmt.Errorf("open the key-value store of pipeline %s: %w", p.name, err)
	}
	p.keyValue = store
	return nil
}

// readSecrets reads what "shai keyvalue configure" has written.
func readSecrets(path string) (kvfilter.Secrets, error) {
	var secrets kvfilter.Secrets
	if path == "" {
		return secrets, errors.New("the pipeline has a key-value store and the monitor was started without its secrets; " +
			"start it with --key-value-secrets FILE (see shai keyvalue configure --help)")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return secrets, fmt.Errorf("read key-value secrets: %w", err)
	}
	if err := json.Unmarshal(text, &secrets); err != nil {
		return secrets, fmt.Errorf("read key-value secrets %s: %w", path, err)
	}
	return secrets, nil
}

// same says whether a resolved pipeline is the one at work, so that it need not be
// stopped.
func (p *pipeline) same(resolved *manifest.Resolved) bool {
	if !reflect.DeepEqual(p.spec, resolved.Pipeline.Spec) || len(p.order) != len(resolved.Tasks) {
		return false
	}
	for _, task := range resolved.Tasks {
		running := p.tasks[task.Metadata.Name]
		if running == nil || !reflect.DeepEqual(running.spec, task.Spec) {
			return false
		}
	}
	return true
}

// runningTasks names the tasks that run, in the pipeline's order.
func (p *pipeline) runningTasks() []string {
	var names []string
	for _, name := range p.order {
		if state := p.tasks[name].status().State; state == stateRunning || state == stateStarting {
			names = append(names, name)
		}
	}
	return names
}

// shutdown stops every task, all at once, and closes what the pipeline holds.
func (p *pipeline) shutdown(ctx context.Context) {
	var group sync.WaitGroup
	for _, name := range p.order {
		group.Go(func() {
			if err := p.tasks[name].stop(ctx); err != nil {
				p.monitor.logger.Error("task did not stop", "pipeline", p.name, "task", name, "error", err)
			}
		})
	}
	group.Wait()
	p.awaitSessions(ctx)
	p.closeConduits()
	if p.keyValue != nil {
		if err := p.keyValue.Close(); err != nil {
			p.monitor.logger.Warn("key-value store", "error", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, holds := range p.sets {
		holds.close()
	}
	clear(p.sets)
}

// awaitSessions returns when no session uses the pipeline's conduits any more: it
// takes every vacancy, for good. The workers are gone, so that cannot take long.
func (p *pipeline) awaitSessions(ctx context.Context) {
	for range cap(p.vacancies) {
		select {
		case <-p.vacancies:
		case <-ctx.Done():
			p.monitor.logger.Error("sessions did not end", "pipeline", p.name)
			return
		}
	}
}
