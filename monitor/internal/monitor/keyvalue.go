// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/wire"
)

// openKeyValue connects to the confined key-value store as its administrator, once. A
// pipeline without tuples needs no store. In mode baseline the task connects by itself.
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
	store, err := kvfilter.Open(ctx, p.spec.KeyValue.Socket, secrets, p.name)
	if err != nil {
		return fmt.Errorf("open the key-value store of pipeline %s: %w", p.name, err)
	}
	p.keyValue = store
	return nil
}

// keyValueStore returns the pipeline's store, nil if it has none or it is not open yet.
func (p *pipeline) keyValueStore() *kvfilter.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keyValue
}

// readSecrets reads the file that "shai keyvalue configure" has written.
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

// retireUsers removes the key-value users of instances that have neither a capability set
// nor one of the live sessions.
func (p *pipeline) retireUsers(live []*session) {
	if p.keyValue == nil {
		return
	}
	needed := map[string]bool{}
	p.mu.Lock()
	for _, holds := range p.sets {
		needed[holds.keyValue] = true
	}
	p.mu.Unlock()
	for _, s := range live {
		if holds := s.bound(); holds != nil {
			needed[holds.keyValue] = true
		}
	}
	if err := p.keyValue.Retain(needed); err != nil {
		p.services.logger.Error("key-value users whose instances have ended are still in the store", "pipeline", p.name,
			"error", err)
	}
}
