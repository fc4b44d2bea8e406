// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// ValidateRequest holds manifests to check. They are not stored.
type ValidateRequest struct {
	Sources []manifest.Source `json:"sources"`
	// Alone says that the objects are checked by themselves: it is no error then if they
	// refer to objects that are not among them, but for policies that others include.
	Alone bool `json:"alone,omitempty"`
}

// Validation is the result of checking manifests.
type Validation struct {
	Hash string `json:"hash,omitempty"` // of the bundle that they make; empty if there are errors
	// Errors are at most 1000, in the order of the sources; ErrorTotal counts all.
	Errors     []Finding           `json:"errors"`
	ErrorTotal int                 `json:"errorTotal"`
	Parameters map[string][]string `json:"parameters"` // of each policy without an error
	Warnings   []Finding           `json:"warnings"`   // at most 1000
	// Composed has the text of each policy that includes another one of these objects, with the
	// clauses of that one in place.
	Composed map[string]string `json:"composed,omitempty"`
}

// Finding is an error or warning about one object. Places count from 1, columns in bytes.
// A place that is not known is absent.
type Finding struct {
	Source string `json:"source"`
	Line   int    `json:"line,omitempty"` // within the source
	Column int    `json:"column,omitempty"`
	// TextLine and TextColumn are the place within the text of a policy at Path.
	TextLine   int `json:"textLine,omitempty"`
	TextColumn int `json:"textColumn,omitempty"`
	// "invalid", "reference", "overlap"; of warnings "unused", "unenforced", "suspicious"
	Code manifest.Code `json:"code"`
	// Lint is the code of a finding in a policy's text, as shai policy lint has it.
	Lint    policy.Code `json:"lint,omitempty"`
	Kind    string      `json:"kind,omitempty"` // of the object
	Name    string      `json:"name,omitempty"` // of the object
	Path    string      `json:"path,omitempty"` // "spec.conduits[2].policy"
	Message string      `json:"message"`        // what is wrong, and what to do about it
}

// maxFindings limits the length of the lists in an answer.
const maxFindings = 1000

// validating limits the number of concurrent checks, and with it their memory: a request
// is read only when it is its turn.
var validating = make(chan struct{}, 4)

// ValidationMux serves POST /v1/validations and probes, and nothing else. It keeps no
// state.
func ValidationMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/validations", answering(validations))
	for _, probe := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(probe, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	}
	return http.NewCrossOriginProtection().Handler(mux)
}

func validations(w http.ResponseWriter, r *http.Request) error {
	turn, cancel := context.WithTimeout(r.Context(), bodyTimeout)
	defer cancel()
	select {
	case validating <- struct{}{}:
		defer func() { <-validating }()
	case <-turn.Done():
		return turn.Err()
	}
	var request ValidateRequest
	if err := read(w, r, maxManifests, &request); err != nil {
		return err
	}
	result, err := validate(request)
	return answer(w, result, err)
}

// validate checks manifests. A bug in this program becomes an error, not a crash, which
// would take other requests with it.
func validate(request ValidateRequest) (result Validation, err error) {
	defer func() {
		if mistake := recover(); mistake != nil {
			err = fmt.Errorf("bug: check manifests: %v\n%s", mistake, debug.Stack())
		}
	}()
	report, err := manifest.Parse(request.Sources...).ReportComposed()
	if err != nil {
		return Validation{}, err
	}
	result = Validation{Errors: []Finding{}, Parameters: report.Parameters, Warnings: []Finding{},
		Composed: report.Composed}
	if report.Bundle != nil {
		result.Hash = report.Bundle.Hash()
	}
	for _, one := range report.Errors {
		if request.Alone && one.Code == manifest.Reference && one.Lint != policy.CodeMissing {
			continue
		}
		if result.ErrorTotal++; result.ErrorTotal <= maxFindings {
			result.Errors = append(result.Errors, findingOf(one))
		}
	}
	for _, one := range report.Warnings[:min(len(report.Warnings), maxFindings)] {
		if !request.Alone || one.Code != manifest.Unused {
			result.Warnings = append(result.Warnings, findingOf(one))
		}
	}
	return result, nil
}

func findingOf(one *manifest.Error) Finding {
	message := one.Message
	if one.Hint != "" {
		message += "; " + one.Hint
	}
	return Finding{
		Source: one.Position.File, Line: one.Position.Line, Column: one.Position.Column,
		TextLine: one.Within.Line, TextColumn: one.Within.Column,
		Code: one.Code, Lint: one.Lint, Kind: one.Kind, Name: one.Name, Path: one.Field, Message: message,
	}
}

// ServeValidations answers at the socket until ctx ends.
func ServeValidations(ctx context.Context, socket string) error {
	listeners, err := Endpoints{Socket: socket}.Open()
	if err != nil {
		return err
	}
	return Serve(ctx, listeners, ValidationMux())
}
