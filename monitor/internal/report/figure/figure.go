// SPDX-License-Identifier: BSD-2-Clause

// Package figure is what a report shows: sections of figures, each of which is a table
// of numbers and says how to draw it. A chart is drawn from the table's text, so that the
// two cannot differ.
package figure

import "time"

// Report is a whole report.
type Report struct {
	Title      string      `json:"title"`
	Subtitle   string      `json:"subtitle"` // what was measured, on which machine
	Made       time.Time   `json:"made"`
	Version    string      `json:"version"` // of the program
	Highlights []Highlight `json:"highlights"`
	Sections   []Section   `json:"sections"`
	Absent     []Absent    `json:"absent"`
	Downloads  []Download  `json:"-"`
}

// Highlight is one fact of the report's head.
type Highlight struct {
	Value  string `json:"value"`
	Label  string `json:"label"`
	Remark string `json:"remark,omitempty"` // its interval, and doubts
	Good   bool   `json:"good,omitempty"`   // something was prevented
}

// Section is a question and its answers.
type Section struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Text    string   `json:"text"`
	Figures []Figure `json:"figures"`
}

// Absent is what a report could show, and does not.
type Absent struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// Download is a file inside the report.
type Download struct {
	Name    string // of the file
	Title   string
	Type    string // as in Content-Type
	Content []byte
}

// Kind says how a figure is drawn.
type Kind string

// The kinds of charts. A figure without a kind is a table alone.
const (
	Bars   Kind = "bars"   // a group of bars for each row
	Stack  Kind = "stack"  // a bar for each row, with a part for each column
	Curves Kind = "curves" // a curve for each column over the rows, which have names
	Steps  Kind = "steps"  // a cumulative distribution for each column over the rows, which are numbers
	Points Kind = "points" // a point for each row: the first column is X, the second Y
	Time   Kind = "time"   // a curve for each column over the rows, which are instants
)

// Figure is a table and its chart.
type Figure struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Caption string   `json:"caption"`
	Kind    Kind     `json:"kind,omitempty"`
	Stacked bool     `json:"stacked,omitempty"` // of kind Time: the values add up
	X       Axis     `json:"x"`
	Y       Axis     `json:"y"`
	Columns []Column `json:"columns,omitempty"`
	Rows    []Row    `json:"rows,omitempty"`
	Notes   []string `json:"notes,omitempty"` // caveats; in place of a chart, why there is none
	Graph   *Graph   `json:"graph,omitempty"` // drawn above the table
}

// Axis describes an axis, and the heading of the rows.
type Axis struct {
	Label string `json:"label,omitempty"`
	Unit  string `json:"unit,omitempty"`
	Log   bool   `json:"log,omitempty"`
}

// Column is a column of numbers or texts.
type Column struct {
	Title     string `json:"title"`
	Colour    string `json:"-"` // "modes-shai": a variable of the stylesheet; empty: by its position
	Reference bool   `json:"-"` // not measured by this run: drawn dashed or hollow
	Text      bool   `json:"-"` // texts, not numbers
	Hidden    bool   `json:"-"` // of the table only, not drawn
}

// Row is a row of a table.
type Row struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at,omitzero"` // of kind Time
	Cells  []Cell    `json:"cells"`
	Colour string    `json:"-"` // of its bar, if there is only one column
}

// Cell is a number with its interval, or a text.
type Cell struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value,omitempty"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Empty reports whether there is nothing to draw.
func (f Figure) Empty() bool {
	for _, row := range f.Rows {
		for _, cell := range row.Cells {
			if cell.Value != nil {
				return false
			}
		}
	}
	return true
}
