// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"strings"
)

// Limits that prevent a malicious or mistaken policy from hanging the monitor.
const (
	MaxText         = 256 << 10 // bytes of a policy file
	MaxClauses      = 256       // clauses in a policy
	MaxLiterals     = 64        // literals in a clause, nested ones included
	MaxDepth        = 8         // nesting of each, until and parentheses
	MaxArguments    = 16        // arguments of a predicate, parameters of a policy
	MaxVariables    = 64        // variables in a clause
	MaxIncludes     = 16        // policies that a policy includes by itself
	MaxIncluded     = 4 << 20   // bytes that policies compiled together get from those that they include, about
	MaxString       = 4 << 10   // bytes of a string literal or a computed string
	DefaultSteps    = 64_000    // literals tried and facts looked at in one decision
	sayingSteps     = 8_000     // the same while the words of a denial are looked for
	maxCaseAnalysis = 64        // tuples into which a hypothesis is split
)

// Each limit has its error; match with errors.Is.
var (
	ErrTextTooLong      = errors.New("policy text is too long")
	ErrTooManyClauses   = errors.New("policy has too many clauses")
	ErrTooManyLiterals  = errors.New("clause has too many literals")
	ErrTooDeep          = errors.New("clause is nested too deeply")
	ErrTooManyArguments = errors.New("too many arguments")
	ErrTooManyVariables = errors.New("clause has too many variables")
	ErrTooManyIncludes  = errors.New("policy includes too many others")
	ErrTooMuchIncluded  = errors.New("policies include too much")
	ErrStringTooLong    = errors.New("string is too long")
	ErrTooManySteps     = errors.New("decision takes too many steps")
)

// Code is the kind of a mistake, for programs. docs/policies.md describes each.
type Code string

// Error is an error in a policy's text.
type Error struct {
	File     string   // as given to Parse
	Line     int      // from 1
	Column   int      // in bytes, from 1
	To       Position // where what is wrong ends; zero if it is not known
	Code     Code
	Message  string // what is wrong, naming the token
	Expected string // what was expected there, "" if the message says it
	Hint     string // the remedy, "" if there is none to suggest
	Limit    error  // the limit that was exceeded, if that is the error
}

func newError(file string, at Range, code Code, expected, hint, format string, arguments ...any) *Error {
	return &Error{File: file, Line: int(at.From.Line), Column: int(at.From.Column), To: at.To, Code: code,
		Message: fmt.Sprintf(format, arguments...), Expected: expected, Hint: hint}
}

// limited returns an error that names the limit that was exceeded.
func (e *Error) limited(limit error) *Error {
	e.Limit, e.Code = limit, CodeLimit
	return e
}

// Error returns everything in one line: file:line:column: message, expected …; hint.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if e.Expected != "" {
		text.WriteString(", expected " + e.Expected)
	}
	if e.Hint != "" {
		text.WriteString("; " + e.Hint)
	}
	return text.String()
}

// Unwrap returns the exceeded limit, or nil.
func (e *Error) Unwrap() error { return e.Limit }

// Errors holds every error found in a text, in the order of the text. It is never empty.
// errors.As with *Error finds the first.
type Errors []*Error

// Error returns one error per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, mistake := range e {
		lines[i] = mistake.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	mistakes := make([]error, len(e))
	for i, mistake := range e {
		mistakes[i] = mistake
	}
	return mistakes
}
