// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"slices"
	"strings"

	"shai.dev/monitor/policy"
)

// renamed is a text with another name in the place of some tokens.
func (d *document) renamed(at []int, name string) string {
	lines := strings.SplitAfter(d.text, "\n")
	tokens := policy.Tokens([]byte(d.text)) // those of the document stand where they do in a manifest
	for _, number := range slices.Backward(slices.Sorted(slices.Values(at))) {
		from, to := tokens[number].Range.From, tokens[number].Range.To
		line := &lines[from.Line-1]
		*line = (*line)[:from.Column-1] + name + (*line)[to.Column-1:]
	}
	return strings.Join(lines, "")
}

// same reports whether documents are one text, which may have been read twice.
func (d *document) same(other *document) bool {
	return d == other || d.part == nil && other.part == nil && d.uri == other.uri
}

// compared are the policies of a directory before and after a renaming.
type compared struct {
	before, after []*policy.File
	renamed       []bool // of each policy: whether its text changes
}

// keepsMeaning reports why a renaming would change what a policy means, by compiling the policies with it and
// without it. Texts beside it that cannot be read have no meaning to keep.
func (s *Server) keepsMeaning(d *document, changed []occurrence, name string) error {
	var c compared
	for _, one := range s.beside(d) {
		text, i := one.text, slices.IndexFunc(changed, func(o occurrence) bool { return o.in.same(one) })
		if i >= 0 {
			one, text = changed[i].in, changed[i].in.renamed(changed[i].at, name)
		}
		before, err := one.parse(one.text)
		if err != nil && i < 0 {
			continue
		}
		after, changedErr := one.parse(text)
		switch {
		case err != nil:
			return refused("the text has mistakes, so it is not known what a renaming would change: mend them before\n%v", err)
		case changedErr != nil:
			return refused("with the name %s, the text would have a mistake: %v", name, changedErr)
		}
		c.before, c.after = append(c.before, before), append(c.after, after)
		c.renamed = append(c.renamed, slices.Repeat([]bool{i >= 0}, len(before.Policies))...)
	}
	return c.check(name)
}

func (c *compared) check(name string) error {
	// A variable that is used once is a mistake, and means the same as one without a name.
	strictly, strictlyAfter := checked(c.before, false), checked(c.after, false)
	before, after := checked(c.before, true), checked(c.after, true)
	if len(before) != len(after) {
		return refused("with the name %s, the texts would have other policies", name)
	}
	for i := range before {
		what := "the policy"
		if before[i].Name != "" {
			what = "policy " + before[i].Name
		}
		switch {
		case before[i].Template == nil && c.renamed[i]:
			return refused("%s has a mistake, so it is not known what a renaming would change: mend it before\n%s", what,
				firstError(before[i]))
		case before[i].Template == nil:
			continue
		case after[i].Template == nil:
			return refused("with the name %s, %s would have a mistake: %s", name, what,
				firstError(after[i]))
		case strictly[i].Template != nil && strictlyAfter[i].Template == nil:
			return refused("with the name %s, %s would have a mistake: %s", name, what,
				firstError(strictlyAfter[i]))
		case !policy.SameButForNames(before[i].Template, after[i].Template):
			return refused("with the name %s, %s would mean something else", name, what)
		}
	}
	return nil
}

// checked compiles policies, as they are written now or as ones that were accepted before.
func checked(files []*policy.File, accepted bool) []policy.Checked {
	for _, file := range files {
		file.Accepted = accepted
	}
	return policy.Check(policy.Surroundings{}, files...)
}

func firstError(of policy.Checked) string {
	for _, one := range of.Diagnostics {
		if one.Severity == policy.SeverityError {
			return one.Message
		}
	}
	return ""
}
