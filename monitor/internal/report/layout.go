// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"slices"

	"shai.dev/monitor/internal/report/figure"
)

// layOut puts the nodes into columns, so that arrows lead to the right, but for those
// that close a cycle. Within a column each node is near those that it is connected with.
func layOut(nodes []figure.Node, edges []figure.Edge) *figure.Graph {
	columns := columnsOfNodes(len(nodes), edges)
	graph := &figure.Graph{Edges: edges}
	for i, n := range nodes {
		n.Column = columns[i]
		graph.Nodes = append(graph.Nodes, n)
	}
	arrange(graph)
	return graph
}

// columnsOfNodes returns for each node the length of the longest path to it, without the
// arrows that close a cycle.
func columnsOfNodes(count int, edges []figure.Edge) []int {
	forward := acyclic(count, edges)
	columns := make([]int, count)
	// A path has at most as many arrows as there are nodes, so the columns settle.
	for range count {
		for _, e := range forward {
			columns[e.To] = max(columns[e.To], columns[e.From]+1)
		}
	}
	// A source stands just before what it flows into.
	for i := range columns {
		nearest := -1
		for _, e := range forward {
			if e.To == i {
				nearest = -1
				break
			}
			if e.From == i && (nearest < 0 || columns[e.To] < nearest) {
				nearest = columns[e.To]
			}
		}
		if nearest > 0 && columns[i] == 0 {
			columns[i] = nearest - 1
		}
	}
	return columns
}

// acyclic leaves out the edges that lead back to a node on the way from a first one.
func acyclic(count int, edges []figure.Edge) []figure.Edge {
	const unseen, open, done = 0, 1, 2
	state := make([]int, count)
	var forward []figure.Edge
	var visit func(int)
	visit = func(from int) {
		state[from] = open
		for _, e := range edges {
			if e.From != from || state[e.To] == open {
				continue
			}
			forward = append(forward, e)
			if state[e.To] == unseen {
				visit(e.To)
			}
		}
		state[from] = done
	}
	incoming := make([]int, count)
	for _, e := range edges {
		incoming[e.To]++
	}
	starts := make([]int, count)
	for i := range starts {
		starts[i] = i
	}
	slices.SortStableFunc(starts, func(a, b int) int { return cmp.Compare(incoming[a], incoming[b]) })
	for _, start := range starts {
		if state[start] == unseen {
			visit(start)
		}
	}
	return forward
}

// sweeps is how often the columns are ordered by their neighbours.
const sweeps = 4

// arrange gives each node a row in its column: by the mean row of its neighbours.
func arrange(graph *figure.Graph) {
	columns := map[int][]int{}
	last := 0
	for i, n := range graph.Nodes {
		columns[n.Column] = append(columns[n.Column], i)
		last = max(last, n.Column)
	}
	tallest := 0
	for _, column := range columns {
		tallest = max(tallest, len(column))
	}
	place := func(column []int) {
		for at, i := range column {
			graph.Nodes[i].Row = float64(at) + float64(tallest-len(column))/2
		}
	}
	for column := range last + 1 {
		place(columns[column])
	}
	for range sweeps {
		for column := range last + 1 {
			slices.SortStableFunc(columns[column], func(a, b int) int {
				return cmp.Compare(meanRow(graph, a), meanRow(graph, b))
			})
			place(columns[column])
		}
	}
}

// meanRow is the mean row of the nodes that a node is connected with, or its own.
func meanRow(graph *figure.Graph, of int) float64 {
	sum, count := 0.0, 0.0
	for _, e := range graph.Edges {
		if e.From == of {
			sum, count = sum+graph.Nodes[e.To].Row, count+1
		}
		if e.To == of {
			sum, count = sum+graph.Nodes[e.From].Row, count+1
		}
	}
	if count == 0 {
		return graph.Nodes[of].Row
	}
	return sum / count
}
