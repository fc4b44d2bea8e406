// SPDX-License-Identifier: BSD-2-Clause

package figure

// Graph is a drawing of nodes in columns and the arrows between them.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is a box at a place of a grid.
type Node struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"` // task, file, tuple, pipe, channel, connection
	Column int     `json:"column"`
	Row    float64 `json:"row"`
	Remark string  `json:"remark,omitempty"`
}

// Edge is an arrow; From and To are indexes of nodes.
type Edge struct {
	From  int       `json:"from"`
	To    int       `json:"to"`
	Label string    `json:"label,omitempty"`
	State EdgeState `json:"state,omitempty"` // empty: nothing is known of it
}

// EdgeState says how much of a flow is open.
type EdgeState string

// The states of edges.
const (
	Open    EdgeState = "open"    // all of it
	Partial EdgeState = "partial" // a part
	Blocked EdgeState = "blocked" // nothing
)
