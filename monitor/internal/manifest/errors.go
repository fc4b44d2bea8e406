// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/policy"
)

// Position is a position in a file, counted from 1. Zero means unknown.
type Position struct {
	File   string
	Line   int
	Column int
}

// String returns "file:line:column", without the parts that are unknown.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Code is the type of an error or a warning, for programs.
type Code string

// The codes of errors.
const (
	Malformed Code = "invalid"   // wrong by itself
	Reference Code = "reference" // names an object that does not exist
	Overlap   Code = "overlap"   // claims something that another pipeline has
)

// The codes of warnings.
const (
	Unused     Code = "unused"     // nothing refers to it
	Unenforced Code = "unenforced" // forbidden accesses are not denied
	Suspicious Code = "suspicious" // a policy's text is probably not what was meant; Error.Lint says more
)

// Error is one error in a manifest.
type Error struct {
	Position Position
	End      Position // where what is wrong ends; zero if it is not known
	// Within is the position within a text field of several lines, such as a policy's
	// text. Its File is empty.
	Within  Position
	Code    Code
	Lint    policy.Code // of a finding in a policy's text
	Kind    string      // of the object; empty when the document does not say
	Name    string      // of the object; empty when the document does not say
	Field   string      // "spec.conduits[2].policy"; empty for the object as a whole
	Message string      // what is wrong, and what was expected
	Hint    string      // what may have been meant
}

// Object returns kind and name: "Task indexer".
func (e *Error) Object() string { return strings.TrimSpace(e.Kind + " " + e.Name) }

// Error returns "file:line:column: object: field: message; hint".
func (e *Error) Error() string {
	text := parts(e.Position.String(), e.Object(), e.Field, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// parts joins the parts of an error that there are.
func parts(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(part string) bool { return part == "" }), ": ")
}

// Errors holds all errors of a set of manifests, in the order of the files.
type Errors []*Error

// Error returns one error per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil returns the errors, or a nil error if there are none.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// inOrder returns the errors sorted by position.
func (e Errors) inOrder() Errors {
	sorted := slices.Clone(e)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(a.Position.File, b.Position.File),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	return sorted
}
