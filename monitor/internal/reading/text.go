// SPDX-License-Identifier: BSD-2-Clause

package reading

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"shai.dev/monitor/internal/shape"
)

// Print writes an explanation for people, with what has no shape escaped.
func (e Explanation) Print(w io.Writer) {
	verdict := "denied"
	if e.Allowed {
		verdict = "allowed"
	}
	fmt.Fprintf(w, "%s: %s\n\n", verdict, shape.Visible(e.Sentence))
	if e.WouldDeny != "" {
		fmt.Fprintf(w, "%s\n\n", shape.Visible(e.WouldDeny))
	}
	for _, proviso := range e.Provisos {
		fmt.Fprintf(w, "but: %s\n\n", shape.Visible(proviso))
	}
	fmt.Fprintf(w, "%s of %s by %s, policy %s\n", e.Question.Access, shape.Visible(e.Question.Conduit),
		shape.Visible(e.Instance), shape.Visible(cmp.Or(e.Policy, "none")))
	fmt.Fprintf(w, "taint: %s (%s)\n", shape.Visible(e.Taint), shape.Visible(e.TaintOf))
	e.Derivation.print(w, 0)
	if len(e.Conditions) > 0 {
		fmt.Fprintln(w, "\nthis holds as long as:")
		for _, condition := range e.Conditions {
			fmt.Fprintf(w, "  %s\n", shape.Visible(condition))
		}
	}
	if e.Remedy != "" {
		fmt.Fprintf(w, "\nto allow it: %s\n", shape.Visible(e.Remedy))
	}
}

// print writes a proof as an indented list. A line with + holds, one with - does not.
func (d Derivation) print(w io.Writer, depth int) {
	if d.Statement == "" && len(d.Because) == 0 {
		return
	}
	mark := "-"
	if d.Holds {
		mark = "+"
	}
	fmt.Fprintf(w, "%s%s %s\n", strings.Repeat("  ", depth), mark, shape.Visible(d.Statement))
	for _, reason := range d.Because {
		reason.print(w, depth+1)
	}
}
