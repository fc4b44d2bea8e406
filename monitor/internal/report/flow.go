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

// arrow is a flow between two nodes, by name.
type arrow struct{ from, to string }

const task = "task"

// flowGraph lays out a pipeline in columns, along the flow.
func flowGraph(pipeline sources.Pipeline, tasks []sources.Task) figure.Figure {
	f := figure.Figure{
		ID: "flow-" + slug(pipeline.Metadata.Name), Title: "Pipeline " + pipeline.Metadata.Name,
		X: figure.Axis{Label: "task"},
		Columns: []figure.Column{{Title: "reads", Text: true}, {Title: "writes", Text: true},
			{Title: "instances", Text: true}},
	}
	nodes, arrows := flows(pipeline, tasks)
	for _, t := range pipeline.Spec.Tasks {
		var reads, writes []string
		for _, a := range arrows {
			if a.to == task+t {
				reads = append(reads, nodes[indexOf(nodes, a.from)].Name)
			}
			if a.from == task+t {
				writes = append(writes, nodes[indexOf(nodes, a.to)].Name)
			}
		}
		f.Rows = append(f.Rows, figure.Row{Name: t, Cells: []figure.Cell{
			figure.Words(strings.Join(reads, ", ")), figure.Words(strings.Join(writes, ", ")),
			figure.Words(nodes[indexOf(nodes, task+t)].Remark)}})
	}
	f.Rows = limited(f.Rows, &f.Notes)
	if len(nodes) > legible {
		f.Notes = append(f.Notes, fmt.Sprintf("Not drawn: nobody can read a drawing of %d tasks and conduits.", len(nodes)))
		return f
	}
	f.Graph = layOut(nodes, arrows)
	return f
}

// legible is the largest number of nodes that are drawn.
const legible = 100

// node is a node with the key by which arrows name it.
type node struct {
	key string
	figure.Node
}

func indexOf(nodes []node, key string) int {
	return slices.IndexFunc(nodes, func(n node) bool { return n.key == key })
}

// flows returns the nodes of a pipeline and the arrows between them.
func flows(pipeline sources.Pipeline, tasks []sources.Task) ([]node, []arrow) {
	var nodes []node
	var arrows []arrow
	for _, name := range pipeline.Spec.Tasks {
		nodes = append(nodes, node{task + name, figure.Node{Name: name, Kind: task}})
	}
	for _, conduit := range pipeline.Spec.Conduits {
		remark := ""
		if conduit.Ingress {
			remark = "data comes in"
		}
		if conduit.Egress {
			remark = "data goes out"
		}
		nodes = append(nodes, node{"conduit" + conduit.Name,
			figure.Node{Name: conduit.Name, Kind: conduit.Kind, Remark: remark}})
		if conduit.Task != "" {
			arrows = append(arrows, arrow{task + conduit.Task, "conduit" + conduit.Name})
		}
		if conduit.From != "" {
			arrows = append(arrows, arrow{task + conduit.From, "conduit" + conduit.Name})
		}
		if conduit.To != "" {
			arrows = append(arrows, arrow{"conduit" + conduit.Name, task + conduit.To})
		}
	}
	for _, t := range tasks {
		at := indexOf(nodes, task+t.Metadata.Name)
		if at < 0 {
			continue
		}
		if len(t.Spec.Parameters) > 0 {
			nodes[at].Remark = fmt.Sprintf("one for each %s", strings.Join(t.Spec.Parameters, ", "))
		}
		for _, name := range t.Spec.Reads {
			arrows = append(arrows, arrow{"conduit" + name, task + t.Metadata.Name})
		}
		for _, name := range t.Spec.Writes {
			arrows = append(arrows, arrow{task + t.Metadata.Name, "conduit" + name})
		}
	}
	arrows = slices.DeleteFunc(arrows, func(a arrow) bool {
		return indexOf(nodes, a.from) < 0 || indexOf(nodes, a.to) < 0
	})
	slices.SortStableFunc(arrows, func(a, b arrow) int {
		return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to))
	})
	return nodes, slices.Compact(arrows)
}
