// SPDX-License-Identifier: BSD-2-Clause

package policytest

import "shai.dev/monitor/policy"

// suiteFile is a file of tests. What it says besides tests counts for each of them.
type suiteFile struct {
	// Policy is the file (.pol, manifests, or a directory of manifests) that the tests are
	// about, relative to this one; without it, that with the same name.
	Policy    string            `json:"policy,omitempty" rule:"max=4096"`
	Arguments map[string]string `json:"arguments,omitempty" rule:"max=16"`
	Facts     []statement       `json:"facts,omitempty" rule:"max=4096"`
	// FactFiles are files of JSON lines, as FactSources have them, relative to this one.
	FactFiles []string  `json:"factFiles,omitempty" rule:"max=64,item=4096"`
	Conduits  []conduit `json:"conduits,omitempty" rule:"max=256"`
	Time      string    `json:"time,omitempty" rule:"max=64"`
	Tests     []entry   `json:"tests" rule:"required,filled,max=4096"`
}

// entry is one test.
type entry struct {
	Name string `json:"name" rule:"required,max=256"`
	// Policy is the name of one of the file's policies; it may be left out if there is one.
	Policy    string            `json:"policy,omitempty" rule:"max=63"`
	Arguments map[string]string `json:"arguments,omitempty" rule:"max=16"`
	Facts     []statement       `json:"facts,omitempty" rule:"max=4096"`
	Principal string            `json:"principal,omitempty" rule:"max=1024"`
	Region    string            `json:"region,omitempty" rule:"max=1024"`
	Address   string            `json:"address,omitempty" rule:"max=64"`
	Time      string            `json:"time,omitempty" rule:"max=64"`
	Operation string            `json:"operation,omitempty" rule:"default=read,enum=read|update|derive"`
	// Conduit is what the policy stands on.
	Conduit *conduit `json:"conduit,omitempty"`
	// To is where derived data flow.
	To *conduit `json:"to,omitempty"`
	// Holds is the policy of the data from which an update derives.
	Holds   *reference `json:"holds,omitempty"`
	Content *content   `json:"content,omitempty"`
	Expect  string     `json:"expect" rule:"required,enum=allowed|denied"`
	Reason  string     `json:"reason,omitempty" rule:"max=4096"`
}

// statement says that tuples are in a conduit.
type statement struct {
	Conduit string         `json:"conduit" rule:"required,max=1024"`
	Says    string         `json:"says" rule:"required,max=64"`
	Tuples  []policy.Tuple `json:"tuples" rule:"required,max=65536"`
	Offset  *int           `json:"offset,omitempty" rule:"min=0"` // of the tuples in the conduit, in bytes
}

// conduit is something that holds data.
type conduit struct {
	Name      string            `json:"name,omitempty" rule:"max=1024"`
	Kind      string            `json:"kind,omitempty" rule:"default=file,enum=file|tuple|connection|pipe|descriptor|channel|output"`
	ID        int               `json:"id,omitempty" rule:"min=0"`
	Length    *int              `json:"length,omitempty" rule:"min=0"`
	Type      string            `json:"type,omitempty" rule:"max=63"`
	Internal  bool              `json:"internal,omitempty"`
	Policy    string            `json:"policy,omitempty" rule:"max=63"`
	Arguments map[string]string `json:"arguments,omitempty" rule:"max=16"`
}

// reference names a policy of the file and gives values to its parameters.
type reference struct {
	Policy    string            `json:"policy" rule:"required,max=63"`
	Arguments map[string]string `json:"arguments,omitempty" rule:"max=16"`
}

// content is what an update writes: tuples and nothing else.
type content struct {
	Tuples []written `json:"says" rule:"required,max=4096"`
	Length int       `json:"length,omitempty" rule:"min=0"` // of the conduit afterwards, in bytes
}

// written are tuples of one relation that an update writes.
type written struct {
	Relation string         `json:"relation" rule:"required,max=64"`
	Tuples   []policy.Tuple `json:"tuples" rule:"required,max=65536"`
	Offset   *int           `json:"offset,omitempty" rule:"min=0"`
}
