// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// edit is a change of a policy, in words and as changes of its syntax tree.
type edit struct {
	words string
	edits []policy.Edit
}

// suggest tries changes of a policy, smallest first. It returns the first with which the
// flow would be allowed, or "" if there is none.
func suggest(e *engine, who *subject, what policy.Operation, to *target, reference catalog.Reference) string {
	text, ok := e.state.PolicyText(reference.Policy)
	if !ok {
		return ""
	}
	file, err := policy.Parse(reference.Policy, []byte(text))
	if err != nil {
		return "" // it is in force, so this program has another language than the one that applied it
	}
	for _, edit := range edits(who, what) {
		changed, ok := file.Edited(edit.edits...)
		if !ok {
			continue
		}
		templates, err := changed.Compile()
		if err != nil {
			continue // a clause may become too long, for example
		}
		bound, err := templates[0].Bind(reference.Arguments)
		if err != nil {
			continue
		}
		conduit := to.conduit
		conduit.Policy = bound
		trial := &target{class: to.class, conduit: conduit, label: conduit.Label(), name: to.name}
		if decide(who, what, trial, e.state, e.now, nil).Allowed {
			return fmt.Sprintf("policy %s: %s", reference.Policy, edit.words)
		}
	}
	return ""
}

// edits lists the changes to try, from the smallest to the largest permission.
func edits(who *subject, what policy.Operation) []edit {
	user := "sKeyIs(" + policy.String(who.session.Principal).String() + ")"
	region := ""
	if who.session.Region != "" {
		region = "sRegionIs(" + policy.String(who.session.Region).String() + ")"
	}
	if what != read {
		update := withClause("update :- " + user + ".")
		list := []edit{update}
		if region != "" {
			narrower := edit{"add `" + region + "` to its read clauses", made(policy.Narrowing(region))}
			list = append(list, narrower, both(narrower, update))
		}
		closed := edit{"remove its read clauses (nobody may read it)", []policy.Edit{policy.Closing}}
		return append(list, closed, both(closed, update))
	}
	exit := withClause("declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).")
	var list []edit
	list = append(list, exit)
	if region != "" {
		one := withClause("read :- " + user + ", " + region + ".")
		list = append(list, one, both(one, exit))
	}
	one := withClause("read :- " + user + ".")
	return append(list, one, both(one, exit), withClause("read :- true."))
}

func both(first, second edit) edit {
	return edit{first.words + " and " + second.words, append(first.edits[:1:1], second.edits...)}
}

// withClause adds a clause.
func withClause(clause string) edit {
	return edit{"add `" + clause + "`", made(policy.Adding(clause))}
}

// made returns an edit, or one that changes nothing if a name is too long for the language.
func made(one policy.Edit, err error) []policy.Edit {
	if err != nil {
		return []policy.Edit{func(*policy.Declaration) bool { return false }}
	}
	return []policy.Edit{one}
}
