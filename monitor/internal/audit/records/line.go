// SPDX-License-Identifier: BSD-2-Clause

package records

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Line returns a record in one line for people: number, time, kind, subject, reason. Its texts are
// those of tasks and users: whoever shows it escapes what has no shape.
func (r Record) Line() string {
	words := []string{fmt.Sprintf("#%d", r.Sequence), r.Time.Format("2006-01-02T15:04:05.000Z"), string(r.Kind)}
	switch r.Kind {
	case Decision, Binding:
		words = append(words, map[bool]string{true: "allowed", false: "denied"}[r.Allowed])
	}
	words = append(words, r.Operation, r.Conduit)
	if who := cmp.Or(r.Reader, r.Instance, r.Task, r.Principal); who != "" {
		words = append(words, "by "+who)
	}
	if r.Policy != "" {
		words = append(words, "policy "+r.Policy)
	}
	if r.Clause != "" {
		words = append(words, "clause "+r.Clause)
	}
	line := strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
	if r.Reason != "" {
		line += ": " + r.Reason
	}
	if r.Repeated > 0 {
		line += fmt.Sprintf(" (%d times)", r.Repeated)
	}
	if r.LatencyMicroseconds > 0 {
		line += fmt.Sprintf(" [%d µs]", r.LatencyMicroseconds)
	}
	return line
}
