// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// edit is a change of a policy, in words and as changes of its syntax tree.
type edit struct {
	words string
	edits []policy.Edit
	bound bool // it is about the conduits with the same arguments only
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
	for _, edit := range edits(who, what, bindingOf(to.conduit.Policy)) {
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
			return inWords(edit, reference.Policy, file.Policies[0].Parameters, bound)
		}
	}
	return ""
}

// bindingOf returns conditions that hold for the conduits with the same arguments only, such as
// `, eq(owner, "alice")`; "" if there is no parameter. Without them, a clause opens every owner's data.
func bindingOf(p *policy.Policy) string {
	conditions := ""
	parameters := p.Template().Parameters()
	for i, value := range p.Values() {
		conditions += ", eq(" + parameters[i] + ", " + value.String() + ")"
	}
	return conditions
}

// inWords is a suggestion in words, with what else it changes. Nobody can change a policy of the standard library.
func inWords(e edit, name string, parameters []string, bound *policy.Policy) string {
	if strings.HasPrefix(name, policy.LibraryPrefix) {
		with := ""
		if e.bound {
			with = " with the arguments " + strings.TrimPrefix(bound.String(), bound.Name())
		}
		return fmt.Sprintf("in the place of %s, a copy of it (shai policy library %s): %s; "+
			"this holds for the conduits that get the copy%s",
			name, strings.TrimPrefix(name, policy.LibraryPrefix), e.words, with)
	}
	scope := "the policy"
	switch {
	case e.bound:
		scope = bound.String()
	case len(parameters) > 0:
		scope += ", with every " + strings.Join(parameters, " and every ")
	}
	return fmt.Sprintf("policy %s: %s; this holds for all conduits under %s, and under policies that include it",
		name, e.words, scope)
}

// edits lists the changes to try, from the smallest to the largest permission.
func edits(who *subject, what policy.Operation, binding string) []edit {
	user := "sKeyIs(" + policy.String(who.session.Principal).String() + ")"
	region := ""
	if who.session.Region != "" {
		region = "sRegionIs(" + policy.String(who.session.Region).String() + ")"
	}
	if what != read {
		update := withClauses("update :- ", []string{user})
		list := []edit{update}
		if region != "" {
			narrower := edit{words: "add `" + region + "` to its read clauses", edits: made(policy.Narrowing(region))}
			list = append(list, narrower, both(narrower, update))
		}
		closed := edit{words: "remove its read clauses (nobody may read it)", edits: []policy.Edit{policy.Closing}}
		return append(list, closed, both(closed, update))
	}
	var list []edit
	exits := exitsOf(who.taint)
	list = append(list, exits...)
	admit := func(conditions []string) {
		for _, one := range admitting(conditions, binding) {
			list = append(list, one)
			for _, exit := range exits {
				list = append(list, both(one, exit))
			}
		}
	}
	if region != "" {
		admit([]string{user + ", " + region})
	}
	admit([]string{user})
	readers := who.taint.Readers()
	if len(readers) > 0 && !slices.Contains(readers, everybody) {
		admit(readers)
	}
	return append(list, admitting([]string{everybody}, binding)...)
}

// admitting adds read clauses: for the conduits with the same arguments, then for all.
func admitting(conditions []string, binding string) []edit {
	wide := withClauses("read :- ", conditions)
	if binding == "" {
		return []edit{wide}
	}
	var bound []string
	for _, condition := range conditions {
		bound = append(bound, condition+binding)
	}
	narrow := withClauses("read :- ", bound)
	narrow.bound = true
	return []edit{narrow, wide}
}

// everybody is the condition that opens to everybody: it is tried last.
const everybody = "true"

// exitsOf lists the exits to try for data that a taint has to keep: one of its own, all of them, and the usual
// one.
func exitsOf(taint policy.Label) (list []edit) {
	const until = "declassify :- isAsRestrictive(read, this.read) until "
	own := slices.DeleteFunc(taint.Exits(), func(condition string) bool { return condition == everybody })
	for _, condition := range own {
		list = append(list, withClauses(until, []string{condition}))
	}
	if len(own) > 1 {
		list = append(list, withClauses(until, own))
	}
	if usual := "cKindIs(descriptor)"; !slices.Contains(own, usual) {
		list = append(list, withClauses(until, []string{usual}))
	}
	return list
}

func both(first, second edit) edit {
	return edit{words: first.words + " and " + second.words, edits: append(first.edits[:1:1], second.edits...)}
}

// withClauses adds a clause for each condition.
func withClauses(head string, conditions []string) edit {
	text := ""
	for _, condition := range conditions {
		text += " " + head + condition + "."
	}
	text = text[1:]
	return edit{words: "add `" + text + "`", edits: made(policy.Adding(text))}
}

// made returns an edit, or one that changes nothing if a name is too long for the language.
func made(one policy.Edit, err error) []policy.Edit {
	if err != nil {
		return []policy.Edit{func(*policy.Declaration) bool { return false }}
	}
	return []policy.Edit{one}
}
