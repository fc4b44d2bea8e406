// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// flow shows which data flows between tasks.
func flow(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "flow", Title: "Where data may flow",
		Text: "Tasks and the conduits that they are expected to read and write. Each item of a conduit has its own policy; " +
			"an arrow is a way that policies may allow, and not a permission.",
	}
	for _, pipeline := range in.Given.Pipelines[:min(len(in.Given.Pipelines), drawn)] {
		section.Figures = append(section.Figures, flowGraph(pipeline, in.Given.Tasks))
	}
	if len(in.Given.Pipelines) > drawn {
		section.Text += fmt.Sprintf(" The first %d of %d pipelines.", drawn, len(in.Given.Pipelines))
	}
	if len(section.Figures) == 0 {
		return section, &figure.Absent{What: section.Title,
			Remedy: "give the pipeline's manifests, or kubectl get pipelines,tasks -o json"}
	}
	return section, nil
}

const task = "task"

// flowGraph lays out a pipeline in columns, along the flow.
func flowGraph(pipeline sources.Pipeline, tasks []sources.Task) figure.Figure {
	f := figure.Figure{
		ID: "flow-" + slug(pipeline.Metadata.Name), Title: "Pipeline " + pipeline.Metadata.Name,
		X: figure.Axis{Label: "task"},
		Columns: []figure.Column{{Title: "reads", Text: true}, {Title: "writes", Text: true},
			{Title: "instances", Text: true}},
	}
	found := flowsOf(pipeline, tasks)
	reads, writes := make([][]string, len(found.nodes)), make([][]string, len(found.nodes))
	for _, e := range found.edges {
		reads[e.To] = append(reads[e.To], found.nodes[e.From].Name)
		writes[e.From] = append(writes[e.From], found.nodes[e.To].Name)
	}
	for _, name := range limited(pipeline.Spec.Tasks, &f.Notes) {
		at := found.at[task+name]
		f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{
			figure.Words(strings.Join(reads[at], ", ")), figure.Words(strings.Join(writes[at], ", ")),
			figure.Words(found.nodes[at].Remark)}})
	}
	if len(found.nodes) > legible {
		f.Notes = append(f.Notes, fmt.Sprintf("Not drawn: nobody can read a drawing of %d tasks and conduits.",
			len(found.nodes)))
		return f
	}
	f.Graph = layOut(found.nodes, found.edges)
	return f
}

// legible is the largest number of nodes that are drawn.
const legible = 100

// flows are the tasks and conduits of a pipeline, and the arrows between them.
type flows struct {
	nodes []figure.Node
	keys  []string       // of the nodes: what they are, and their name
	at    map[string]int // the node of a key
	edges []figure.Edge
}

func (f *flows) node(key string, n figure.Node) {
	if _, known := f.at[key]; !known {
		f.at[key] = len(f.nodes)
	}
	f.nodes, f.keys = append(f.nodes, n), append(f.keys, key)
}

// arrow adds one between two nodes; none if the pipeline does not have both.
func (f *flows) arrow(from, to string) {
	start, known := f.at[from]
	end, alsoKnown := f.at[to]
	if known && alsoKnown {
		f.edges = append(f.edges, figure.Edge{From: start, To: end})
	}
}

// flowsOf returns the flows of a pipeline with the tasks of its namespace.
func flowsOf(pipeline sources.Pipeline, tasks []sources.Task) flows {
	found := flows{at: map[string]int{}}
	for _, name := range pipeline.Spec.Tasks {
		found.node(task+name, figure.Node{Name: name, Kind: task})
	}
	for _, conduit := range pipeline.Spec.Conduits {
		remark := ""
		if conduit.Ingress {
			remark = "data comes in"
		}
		if conduit.Egress {
			remark = "data goes out"
		}
		found.node("conduit"+conduit.Name, figure.Node{Name: conduit.Name, Kind: conduit.Kind, Remark: remark})
		found.arrow(task+conduit.Task, "conduit"+conduit.Name)
		found.arrow(task+conduit.From, "conduit"+conduit.Name)
		found.arrow("conduit"+conduit.Name, task+conduit.To)
	}
	for _, t := range tasks {
		at, known := found.at[task+t.Metadata.Name]
		if !known || t.Metadata.Namespace != pipeline.Metadata.Namespace {
			continue
		}
		if len(t.Spec.Parameters) > 0 {
			found.nodes[at].Remark = fmt.Sprintf("one for each %s", strings.Join(t.Spec.Parameters, ", "))
		}
		for _, name := range t.Spec.Reads {
			found.arrow("conduit"+name, task+t.Metadata.Name)
		}
		for _, name := range t.Spec.Writes {
			found.arrow(task+t.Metadata.Name, "conduit"+name)
		}
	}
	slices.SortStableFunc(found.edges, func(a, b figure.Edge) int {
		return cmp.Or(strings.Compare(found.keys[a.From], found.keys[b.From]),
			strings.Compare(found.keys[a.To], found.keys[b.To]))
	})
	found.edges = slices.Compact(found.edges)
	return found
}
