// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"fmt"
	"slices"

	"shai.dev/monitor/internal/catalog"
)

// runNaive decides every instance against every class of its sets, one after the other,
// as in the paper's Algorithm 1. Run must give the same result, and its speed is compared
// with it.
func runNaive(ctx context.Context, plan *Plan, state *catalog.State, options Options) (*Result, error) {
	e := prepared(plan, state, options)
	var all []*Capabilities
	for _, instance := range plan.Instances(state, now) {
		c, err := e.naive(ctx, instance)
		if err != nil {
			return nil, fmt.Errorf("analyse pipeline %s: %w", plan.Pipeline, err)
		}
		all = append(all, c)
	}
	return newResult(plan, state, options.Now, all), nil
}

func (e *engine) naive(ctx context.Context, instance Instance) (*Capabilities, error) {
	out := &Capabilities{Instance: instance}
	who, err := newSubject(e.plan, e.state, instance)
	if err != nil {
		return out, nil //nolint:nilerr // as in a full run: no taint, no access
	}
	reads, writes := make(map[uint32]footprint), make(map[uint32]footprint)
	for class := uint32(1); class <= e.state.Classes(); class++ {
		if class%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e.plan.lists(who.task.Reads, e.state.Class(class).Set) {
			if f, ok := e.try(who, read, class); ok {
				reads[class] = f
			}
		}
		if e.plan.lists(who.task.Writes, e.state.Class(class).Set) {
			if f, ok := e.try(who, write, class); ok {
				writes[class] = f
			}
		}
	}
	out.setReads(reads)
	out.setWrites(writes)
	e.tryOthers(who, out)
	return out, nil
}

// equal reports whether two results give the same accesses under the same
// conditions.
func (r *Result) equal(other *Result) bool {
	return slices.EqualFunc(r.instances, other.instances, func(a, b *Capabilities) bool {
		return slices.Equal(a.encode(nil), b.encode(nil))
	})
}
