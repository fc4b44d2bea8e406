// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"regexp"
	"strings"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// edit is a change of a policy's text, in words and as a function.
type edit struct {
	words  string
	change func(text string) string
}

// suggest tries changes of a policy, smallest first. It returns the first with which the
// flow would be allowed, or "" if there is none.
func suggest(e *engine, who *subject, what policy.Operation, to *target, reference catalog.Reference) string {
	text, ok := e.state.PolicyText(reference.Policy)
	if !ok {
		return ""
	}
	for _, edit := range edits(who, what) {
		changed := edit.change(text)
		if changed == text {
			continue
		}
		template, err := policy.CompileText(reference.Policy, []byte(changed))
		if err != nil {
			continue
		}
		bound, err := template.Bind(reference.Arguments)
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
	user := fmt.Sprintf("sKeyIs(%q)", who.session.Principal)
	region := ""
	if who.session.Region != "" {
		region = fmt.Sprintf("sRegionIs(%q)", who.session.Region)
	}
	update := withClause("update :- " + user + ".")
	if what != read {
		list := []edit{update}
		if region != "" {
			narrower := narrowRead(region)
			list = append(list, narrower, both(narrower, update))
		}
		closed := edit{"remove its read clauses (nobody may read it)",
			func(text string) string { return readClause.ReplaceAllString(text, "") }}
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
	return edit{first.words + " and " + second.words,
		func(text string) string { return second.change(first.change(text)) }}
}

// withClause adds a clause at the end of a policy's block. A declassify clause replaces
// the existing one: two would be alternatives, which does not relax the policy.
func withClause(clause string) edit {
	return edit{"add `" + clause + "`", func(text string) string {
		if strings.HasPrefix(clause, "declassify") && strings.Contains(text, "declassify") {
			return text
		}
		if at := strings.LastIndexByte(text, '}'); at >= 0 {
			return text[:at] + "\n" + clause + "\n" + text[at:]
		}
		return text + "\n" + clause + "\n"
	}}
}

// readClause matches one read clause. A full stop within a text or a number ends the
// match early; the changed policy then does not compile and is not suggested.
var readClause = regexp.MustCompile(`(?s)\bread\s*:-\s*(.*?)\.(?:\s|$)`)

func narrowRead(literal string) edit {
	return edit{"add `" + literal + "` to its read clauses", func(text string) string {
		return readClause.ReplaceAllString(text, "read :- $1, "+literal+".\n")
	}}
}
