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
	Lines         []line
	ID            string // makes the names of the drawing's parts unique on its page
}

type line struct {
	Path, Class, Label string
	LabelX, LabelY     int
}

type box struct {
	X, Y, Width, Height, MiddleX, NameY, RemarkY, Round int
	Name, Class, Remark                                 string
}

// draw gives nodes and edges their places.
func draw(id string, graph figure.Graph) drawing {
	d := drawing{ID: id}
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
		drawn := line{Class: "edge", Label: visible(edge.Label)}
		if edge.State != "" {
			drawn.Class += " " + string(edge.State)
		}
		if from.X < to.X {
			bend, sag := (x2-x1)/2, 0
			if to.X-from.X > columnWidth {
				sag = boxHeight // around the boxes between them
			}
			drawn.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1+sag, x2-bend, y2+sag, x2-6, y2)
			drawn.LabelX, drawn.LabelY = x1+bend, (y1+y2)/2+3*sag/4-4
			d.Lines = append(d.Lines, drawn)
			lowest = max(lowest, max(y1, y2)+sag)
			continue
		}
		// Back to an earlier column: beneath both boxes.
		x1, y1, x2, y2 = from.MiddleX, from.Y+boxHeight, to.MiddleX, to.Y+boxHeight
		down := max(y1, y2) + rowWidth/2
		drawn.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, down, x2, down, x2, y2+6)
		drawn.LabelX, drawn.LabelY = (x1+x2)/2, (y1+y2)/2+3*(down-max(y1, y2))/4-4
		d.Lines = append(d.Lines, drawn)
		lowest = max(lowest, down)
	}
	d.Height = lowest
	return d
}
