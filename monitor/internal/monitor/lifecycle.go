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

	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
)

// openKeyValue connects to the confined key-value store as its administrator, once.
// A pipeline without tuples needs none; in mode baseline the task connects itself.
func (p *pipeline) openKeyValue(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keyValue != nil || p.spec.KeyValue == nil || p.currentMode() == wire.ModeBaseline {
		return nil
	}
	secrets, err := readSecrets(p.services.options.Secrets)
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
			"start it with --secrets FILE (see shai keyvalue configure --help)")
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

// quiesce ends every task, all at once, and every session; none begins until readmit. An
// error says that something may still be at work.
func (p *pipeline) quiesce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	failures := make([]error, len(p.order))
	var group sync.WaitGroup
	for i, name := range p.order {
		group.Go(func() {
			if err := p.tasks[name].stop(ctx); err != nil {
				failures[i] = fmt.Errorf("stop task %s/%s: %w", p.name, name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(append(failures, p.awaitSessions())...)
}

// sessionsEnd is how long the sessions of a pipeline whose workers are gone may take to
// end.
const sessionsEnd = 30 * time.Second

// awaitSessions returns when no session uses the pipeline's conduits any more; none
// begins until readmit.
func (p *pipeline) awaitSessions() error {
	if left := p.slots.stop(time.After(sessionsEnd)); left > 0 {
		return fmt.Errorf("pipeline %s: %d sessions have not ended", p.name, left)
	}
	return nil
}

// readmit lets sessions begin again.
func (p *pipeline) readmit() { p.slots.resume() }

// close gives back what a pipeline holds that has been quiesced.
func (p *pipeline) close() {
	p.closeConduits()
	if p.keyValue != nil {
		if err := p.keyValue.Close(); err != nil {
			p.services.logger.Warn("key-value store", "error", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, holds := range p.sets {
		holds.close()
	}
	clear(p.sets)
}

// shutdown ends the pipeline for good.
func (p *pipeline) shutdown(ctx context.Context) {
	if err := p.quiesce(ctx); err != nil {
		p.services.logger.Error("pipeline did not stop", "pipeline", p.name, "error", err)
	}
	p.close()
}

// handOver gives the listening socket to the pipeline that listens there from now on, so
// that connections which wait in the kernel's queue are served by it. Both are quiesced.
// In mode baseline a task listens by itself: for it the address is only made free.
func (p *pipeline) handOver(next *pipeline) {
	if p.acceptor == nil || next.acceptor != nil || next.listens() == "" || p.listens() != next.listens() {
		return
	}
	if next.currentMode() == wire.ModeBaseline {
		p.acceptor.close()
	} else {
		next.acceptor = p.acceptor
	}
	p.acceptor = nil
}

// keepDone takes over which tasks have run to their end. A changed policy is no reason
// to run one again, such as an indexer: what it has written stands under the policies
// of the conduits that it wrote to. A task that is itself another one starts anew.
func (p *pipeline) keepDone(old *pipeline) {
	for name, task := range p.tasks {
		before := old.tasks[name]
		if before == nil || !reflect.DeepEqual(before.spec, task.spec) {
			continue
		}
		if done := before.status(); done.State == stateSucceeded {
			task.mu.Lock()
			task.state, task.message, task.since = done.State, done.Message, *done.Since
			task.mu.Unlock()
		}
	}
}

// listens is the address at which the pipeline's users connect, "" without any.
func (p *pipeline) listens() string {
	for _, conduit := range p.spec.Conduits {
		if conduit.Kind == manifest.KindConnection && conduit.Listen != "" {
			return conduit.Listen
		}
	}
	return ""
}
