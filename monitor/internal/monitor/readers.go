// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

// Readers implements [api.Service]. It looks into the capability sets of the last analysis:
// to decide anew for each of 40,000 users would take seconds.
func (m *Monitor) Readers(ctx context.Context, request api.ReadersRequest) (api.Readers, error) {
	title := "list who may access a conduit"
	p, err := m.pipeline(title, request.Pipeline)
	if err != nil {
		return api.Readers{}, err
	}
	state := m.state()
	conduit, what, err := accessOf(title, state, request.Conduit, request.Access)
	if err != nil {
		return api.Readers{}, err
	}
	m.mu.RLock()
	known := m.analyses[p.Name()]
	m.mu.RUnlock()
	if known == nil || known.result == nil {
		return api.Readers{}, notAnalyzed(title, p.Name())
	}
	readers, err := api.ReadersOf(ctx, p.Name(), known.result, state, request, conduit, what)
	return readers.InMode(p.Mode().String()), err
}

// accessOf returns the conduit and the operation that a question names.
func accessOf(title string, state *catalog.State, name, access string) (policy.Conduit, policy.Operation, error) {
	conduit, covered := state.ConduitNamed(name)
	if !covered {
		return conduit, 0, api.NotFound(title,
			"use the name that the pipeline's paths give it, such as /corpus/public/17.txt",
			"no rule of the bundle covers the conduit %q", name)
	}
	operations := map[string]policy.Operation{"": policy.Read, "read": policy.Read, "write": policy.Write}
	what, known := operations[access]
	if !known {
		return conduit, 0, api.Invalid(title, "ask for read or write", "access %q is unknown", access)
	}
	return conduit, what, nil
}
