// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"fmt"
	"net/http"
)

// Problem is an error as it is sent (RFC 9457): what went wrong, why, and what the user
// can do about it.
type Problem struct {
	Title  string `json:"title"`            // operation and object: "start task syse/indexer"
	Status int    `json:"status"`           // HTTP status
	Detail string `json:"detail"`           // cause
	Remedy string `json:"remedy,omitempty"` // what to do
	// Errors are single findings with their positions, for manifests.
	Errors []string `json:"errors,omitempty"`
}

// Error returns "title: detail; remedy".
func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// NotFound returns the problem of an object that does not exist.
func NotFound(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusNotFound, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}

// Denied returns the problem of an access that the policies forbid.
func Denied(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusForbidden, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}

// Invalid returns the problem of a request that can never succeed in this form.
func Invalid(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}

// Conflict returns the problem of a request that the current state does not allow.
func Conflict(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusConflict, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}

// Unavailable returns the problem of a monitor that is not ready, or is stopping.
func Unavailable(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}
