// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
)

// Severity says what a finding means for the policy.
type Severity string

// With an error, the policy is refused. With a warning it is accepted, and is probably not what
// its author meant.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is one finding in a policy's text. Lines and columns count from 1, columns in bytes;
// the range does not include its end. Every diagnostic has a remedy, or a message that says it.
type Diagnostic struct {
	Severity  Severity `json:"severity"`
	Code      Code     `json:"code"`
	File      string   `json:"file"`
	Line      int      `json:"line"`
	Column    int      `json:"column"`
	EndLine   int      `json:"endLine"`
	EndColumn int      `json:"endColumn"`
	Policy    string   `json:"policy,omitempty"` // the declared name, if that is known
	Message   string   `json:"message"`
	Remedy    string   `json:"remedy,omitempty"`
}

// Diagnostic returns the error in the form of diagnostics.
func (e *Error) Diagnostic() Diagnostic {
	message := e.Message
	if e.Expected != "" {
		message += ", expected " + e.Expected
	}
	d := Diagnostic{Severity: SeverityError, Code: e.Code, File: e.File, Line: e.Line, Column: e.Column,
		EndLine: int(e.To.Line), EndColumn: int(e.To.Column), Message: message, Remedy: e.Hint}
	if e.To == (Position{}) {
		d.EndLine, d.EndColumn = d.Line, d.Column
	}
	return d
}

// Diagnostics returns all errors in the form of diagnostics.
func (e Errors) Diagnostics() []Diagnostic {
	all := make([]Diagnostic, len(e))
	for i, mistake := range e {
		all[i] = mistake.Diagnostic()
	}
	return all
}

// SortDiagnostics sorts by file and place.
func SortDiagnostics(all []Diagnostic) {
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// inOrder sorts by place, and drops what is said twice about one.
func inOrder(all []Diagnostic) []Diagnostic {
	SortDiagnostics(all)
	return slices.Compact(all)
}
