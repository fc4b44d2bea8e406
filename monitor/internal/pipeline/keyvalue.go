// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/wire"
)

// openKeyValue connects to the confined key-value store as its administrator, once. A
// pipeline without tuples needs no store. In mode baseline the task connects by itself. Calls
// do not overlap. It holds no lock meanwhile: a store may take long to answer.
func (p *Pipeline) openKeyValue(ctx context.Context) error {
	if p.keyValueStore() != nil || p.spec.KeyValue == nil || p.Mode() == wire.ModeBaseline {
		return nil
	}
	if p.services.Options.Secrets == "" {
		return errors.New("the pipeline has a key-value store and the monitor was started without its secrets; " +
			"start it with --secrets FILE (see shai keyvalue configure --help)")
	}
	if err := p.services.Options.Allowed.Store(p.spec.KeyValue.Socket, true); err != nil {
		return fmt.Errorf("open the key-value store of pipeline %s: %w", p.name, err)
	}
	secrets, err := kvfilter.ReadSecrets(p.services.Options.Secrets)
	if err != nil {
		return err
	}
	store, err := kvfilter.Open(ctx, p.spec.KeyValue.Socket, secrets, p.name)
	if err != nil {
		return fmt.Errorf("open the key-value store of pipeline %s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keyValue = store
	return nil
}

// keyValueStore returns the pipeline's store, nil if it has none or it is not open yet.
func (p *Pipeline) keyValueStore() *kvfilter.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keyValue
}

// HasUnneededUsers reports whether RetireUsers may have something to do.
func (p *Pipeline) HasUnneededUsers() bool {
	return p.keyValueStore() != nil && p.stale.unneeded.Load()
}

// RetireUsers removes the key-value users of instances that have neither a capability set
// nor a live session. Called after Fence, with Binding held, so that no instance is about to
// get one.
func (p *Pipeline) RetireUsers() {
	store := p.keyValueStore()
	if store == nil || !p.stale.unneeded.Swap(false) {
		return
	}
	needed := map[string]bool{}
	p.mu.Lock()
	for _, holds := range p.sets {
		needed[holds.keyValue] = true
	}
	p.mu.Unlock()
	for _, s := range p.sessions.live() {
		if holds := s.bound(); holds != nil {
			needed[holds.keyValue] = true
		}
	}
	p.mu.Lock()
	maps.DeleteFunc(p.permitted, func(user string, _ []analysis.Other) bool { return !needed[user] })
	p.mu.Unlock()
	if err := store.Retain(needed); err != nil {
		p.stale.unneeded.Store(true)
		p.services.Logger.Error("key-value users whose instances have ended are still in the store", "pipeline", p.name,
			"error", err)
	}
}
