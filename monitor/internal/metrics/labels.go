// SPDX-License-Identifier: BSD-2-Clause

package metrics

import "strings"

// Labels whose values come from manifests, so that they are bounded; see scope.go.
var (
	pipelineLabel = Label{"pipeline", "name of the pipeline"}
	taskLabel     = Label{"task", "name of the task"}
	conduitLabel  = Label{"conduit", "name of the conduit in the pipeline's manifest"}
	policyLabel   = Label{"policy", "name of the policy, without arguments"}
	forbidsLabel  = Label{policyLabel.Name, policyLabel.Meaning + "; empty if no policy decided"}
	sourceLabel   = Label{"source", "name of the FactSource"}
)

// Labels whose values are fixed lists.
var (
	modeLabel      = Label{"mode", "baseline, dynamic, dynamic-lazy, audit or shai"}
	allowedLabel   = Label{"allowed", "true or false"}
	kindLabel      = Label{"kind", "what the task waited for: " + list(Kinds)}
	operationLabel = Label{"operation", "what was asked for: " + list(operations)}
	reasonLabel    = Label{"reason", "why: " + list(Reasons)}
)

// Kind is the kind of an interception: each counts how often a task's progress waited for the
// monitor, except Reset, which makes no task wait.
type Kind string

// The kinds.
const (
	Register     Kind = "register"
	Accept       Kind = "accept"
	Authenticate Kind = "authenticate"
	Open         Kind = "open"
	Write        Kind = "write"
	Choose       Kind = "choose"
	Path         Kind = "path"
	Send         Kind = "send"
	Reset        Kind = "reset"
)

// Kinds lists all kinds.
var Kinds = []Kind{Register, Accept, Authenticate, Open, Write, Choose, Path, Send, Reset}

// Reason says why an access was denied.
type Reason string

// The reasons.
const (
	ByPolicy    Reason = "policy"      // the conduit's policy does not allow it
	ByTaint     Reason = "taint"       // what was read must not flow there
	NoPolicy    Reason = "no_policy"   // the conduit has no policy, so nobody has access
	Unknown     Reason = "unknown"     // neither a conduit nor part of the task's runtime
	Changed     Reason = "changed"     // the file is not the document that was catalogued
	Unavailable Reason = "unavailable" // it cannot be opened: for the task's user, or for want of descriptors
	Unrecorded  Reason = "unrecorded"  // the audit log cannot record it
	Login       Reason = "login"       // the session has no user
	Limit       Reason = "limit"       // of connections, sessions, time, or work for one decision
	Protocol    Reason = "protocol"    // a message that breaks the protocol, or a process that may not ask
	SystemCall  Reason = "system_call" // the sandbox refused it by itself
	Integrity   Reason = "integrity"   // a worker was not rolled back as it should
	Choice      Reason = "choice"      // of a policy: its user has not signed it, or may not make it
	Content     Reason = "content"     // what was to be written is not in the form of the conduit's type
)

// Reasons lists all reasons.
var Reasons = []Reason{ByPolicy, ByTaint, NoPolicy, Unknown, Changed, Unavailable, Unrecorded, Login, Limit, Protocol,
	SystemCall, Integrity, Choice, Content}

// callOperation stands for every system call: a task chooses which it tries.
const callOperation = "system call"

// operations are the values of the label operation.
var operations = []string{"read", "write", "leave", "open", "path", "accept4", "authenticate", "session", "message",
	"register", "choose", "start", "roll back", callOperation}

// OpenPath says who has answered an open.
type OpenPath string

// The paths.
const (
	BySupervisor OpenPath = "supervisor" // from what was decided ahead
	ByMonitor    OpenPath = "monitor"    // by a decision
)

func list[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}

// maxValue limits a label's value, in bytes.
const maxValue = 200

// safe returns a text as a label's value: valid UTF-8 of limited length.
func safe(text string) string {
	if len(text) > maxValue {
		return strings.ToValidUTF8(text[:maxValue], "") + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
