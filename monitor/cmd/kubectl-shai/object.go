// SPDX-License-Identifier: BSD-2-Clause

package main

import "slices"

// object is an object of any kind, as far as these commands read it.
type object struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	Spec     spec     `json:"spec"`
	Status   status   `json:"status"`
}

type metadata struct {
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
	Generation int64  `json:"generation"`
}

type spec struct {
	Pool     string   `json:"pool,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Rollout  rollout  `json:"rollout"`
	Policy   string   `json:"policy,omitempty"`   // of a PolicyRevision
	Revision int      `json:"revision,omitempty"` // its number
	Text     string   `json:"text,omitempty"`
	Tasks    []string `json:"tasks,omitempty"`
	Pipeline string   `json:"pipeline,omitempty"`
}

type rollout struct {
	Paused bool `json:"paused"`
}

type status struct {
	ObservedGeneration int64       `json:"observedGeneration"`
	Conditions         []condition `json:"conditions"`
	Members            members     `json:"members"`
	Rollout            progress    `json:"rollout"`
	Effect             effect      `json:"effect"`
	StableRevision     string      `json:"stableRevision,omitempty"`
	Member             string      `json:"member,omitempty"`         // that has answered a MemberReading
	Sealed             []byte      `json:"sealed,omitempty"`         // what it has answered
	CompletionTime     string      `json:"completionTime,omitempty"` // of a MemberReading
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type progress struct {
	Release string `json:"release,omitempty"`
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	Members int    `json:"members"`
	Verdict string `json:"verdict,omitempty"`
	Message string `json:"message,omitempty"`
}

type effect struct {
	OpenedTotal int64 `json:"openedTotal"`
	ClosedTotal int64 `json:"closedTotal"`
	UsersTotal  int64 `json:"usersTotal"`
}

// find returns a condition, the zero value if the object does not have it.
func (o object) find(kind string) condition {
	at := slices.IndexFunc(o.Status.Conditions, func(c condition) bool { return c.Type == kind })
	if at < 0 {
		return condition{}
	}
	return o.Status.Conditions[at]
}

// seen reports whether the operator has looked at the present spec.
func (o object) seen() bool { return o.Status.ObservedGeneration >= o.Metadata.Generation }

// name returns namespace and name.
func (o object) name() string {
	if o.Metadata.Namespace == "" {
		return o.Metadata.Name
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name
}
