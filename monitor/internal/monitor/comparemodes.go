// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/wire"
)

// modeChanges lists the policies and pipelines that have another mode in the candidate, and the new ones that
// do not deny what is forbidden.
func modeChanges(before, after catalog.Bundle, old, next map[string]*pipeline.Pipeline) []api.ModeChange {
	list := []api.ModeChange{}
	was := map[string]catalog.Mode{}
	for _, p := range before.Policies {
		was[p.Name] = cmp.Or(p.Mode, catalog.Enforce)
	}
	for _, p := range after.Policies {
		from, to := was[p.Name], cmp.Or(p.Mode, catalog.Enforce)
		if from == to || from == "" && to == catalog.Enforce {
			continue
		}
		list = append(list, api.ModeChange{Kind: api.OfPolicy, Name: p.Name, From: string(from), To: string(to),
			Effect: effectOfPolicy(from, to)})
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		to, from := next[name].Mode(), ""
		if old[name] != nil {
			from = old[name].Mode().String()
		}
		if from == to.String() || from == "" && denies(to.String()) {
			continue
		}
		list = append(list, api.ModeChange{Kind: api.OfPipeline, Name: name, From: from, To: to.String(),
			Effect: effectOfPipeline(from, to.String())})
	}
	slices.SortStableFunc(list, func(a, b api.ModeChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// effectOfPolicy says what becomes of accesses that the policy alone forbids.
func effectOfPolicy(from, to catalog.Mode) string {
	warned := map[catalog.Mode]string{catalog.Audit: "recorded", catalog.Warn: "recorded with warnings"}[to]
	switch {
	case to == catalog.Enforce:
		return "what it forbids is denied from then on: it happened, and was recorded"
	case from == "":
		return fmt.Sprintf("what it forbids is not denied: it happens, and is %s", warned)
	case from == catalog.Enforce:
		return fmt.Sprintf("what it forbids is not denied any more: it happens, and is %s", warned)
	}
	return fmt.Sprintf("what it forbids happens as before, and is %s", warned)
}

func denies(mode string) bool {
	return mode != wire.ModeAudit.String() && mode != wire.ModeBaseline.String()
}

// effectOfPipeline says what becomes of accesses that policies forbid.
func effectOfPipeline(from, to string) string {
	switch {
	case denies(to) && denies(from):
		return "what policies forbid is denied as before"
	case denies(to):
		return "what policies forbid is denied from then on: it happened"
	case to == wire.ModeBaseline.String() && from == "":
		return "nothing is enforced: what policies forbid happens, and is not recorded"
	case to == wire.ModeBaseline.String():
		return "nothing is enforced any more: what policies forbid happens, and is not recorded"
	case from == "":
		return "accesses are not denied: what policies forbid happens, and is recorded"
	case denies(from):
		return "accesses are not denied any more: what policies forbid happens, and is recorded"
	}
	return "what policies forbid happens as before, and is recorded from then on"
}
