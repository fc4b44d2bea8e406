// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"fmt"
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/reading"
	"shai.dev/monitor/policy"
)

// ReadersOf lists those who may access a conduit by a result of the analysis.
func ReadersOf(ctx context.Context, pipeline string, result *analysis.Result, state *catalog.State,
	request ReadersRequest, conduit policy.Conduit, what policy.Operation) (Readers, error) {
	out := Readers{
		Pipeline: pipeline, Conduit: request.Conduit, Access: what.String(), Policy: conduit.Policy.String(),
		Analyzed: result.Analyzed, Current: result.Current(state), Readers: []Reader{},
	}
	type user struct{ task, principal string }
	found := map[user]int{} // the place in the list; beyond its limit, not in it
	for holder := range result.Holders(what, request.Conduit) {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		who := user{holder.Task, holder.Values["user"]}
		at, listed := found[who]
		if !listed {
			at = len(found)
			found[who] = at
			if at < request.Limit {
				out.Readers = append(out.Readers, Reader{Task: who.task, Principal: who.principal})
			}
		}
		if region, has := holder.Values["region"]; has && at < request.Limit &&
			!slices.Contains(out.Readers[at].Regions, region) { // instances may differ in other parameters
			out.Readers[at].Regions = append(out.Readers[at].Regions, region)
		}
	}
	out.Total = len(found)
	out.Unlisted = unlisted(state, conduit, what)
	return out, nil
}

// InMode returns the list for a pipeline in a mode.
func (r Readers) InMode(mode string) Readers {
	if lets := reading.InMode(mode); lets != "" {
		r.Unlisted = lets // whatever else lets others in
	}
	return r
}

// unlisted says who has access though no analysis grants it.
func unlisted(state *catalog.State, conduit policy.Conduit, what policy.Operation) string {
	switch mode := state.ModeOf(conduit.Policy); {
	case mode != catalog.Enforce:
		return fmt.Sprintf("its policy is in mode %s: whom it forbids has access, too, which is recorded", mode)
	case what == policy.Write && conduit.Type != "":
		return "each write is decided on by what is written: others may be allowed some"
	}
	return ""
}
