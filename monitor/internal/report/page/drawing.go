// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"fmt"

	"shai.dev/monitor/internal/report/figure"
)

// Sizes of a drawing, in pixels.
const (
	boxWidth, boxHeight   = 128, 44
	columnWidth, rowWidth = 184, 66
	margin                = 12
	nameLength            = 16
	remarkLength          = 19
)

// drawing is a graph with its places.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []string // paths
}

type box struct {
	X, Y, Width, Height, MiddleX, NameY, RemarkY, Round int
	Name, Class, Remark                                 string
}

// draw gives nodes and edges their places.
func draw(graph figure.Graph) drawing {
	var d drawing
	for _, node := range graph.Nodes {
		x, y := margin+node.Column*columnWidth, margin+int(node.Row*rowWidth)
		b := box{X: x, Y: y, Width: boxWidth, Height: boxHeight,
			MiddleX: x + boxWidth/2, NameY: y + 19, RemarkY: y + 35,
			Name: short(node.Name, nameLength), Class: "conduit", Remark: short(node.Kind, remarkLength)}
		if node.Kind == "task" {
			b.Class, b.Round = "task", boxHeight/2
		}
		if node.Remark != "" {
			b.Remark = short(node.Remark, remarkLength)
		}
		d.Boxes = append(d.Boxes, b)
		d.Width, d.Height = max(d.Width, x+boxWidth+margin), max(d.Height, y+boxHeight+margin)
	}
	lowest := d.Height
	for _, edge := range graph.Edges {
		from, to := d.Boxes[edge.From], d.Boxes[edge.To]
		x1, y1, x2, y2 := from.X+boxWidth, from.Y+boxHeight/2, to.X, to.Y+boxHeight/2
		if from.X < to.X {
			bend := (x2 - x1) / 2
			d.Lines = append(d.Lines, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2-6, y2))
			continue
		}
		// Back to an earlier column: beneath both boxes.
		x1, y1, x2, y2 = from.MiddleX, from.Y+boxHeight, to.MiddleX, to.Y+boxHeight
		down := max(y1, y2) + rowWidth/2
		d.Lines = append(d.Lines, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, down, x2, down, x2, y2+6))
		lowest = max(lowest, down)
	}
	d.Height = lowest
	return d
}
