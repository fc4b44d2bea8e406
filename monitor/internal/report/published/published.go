// SPDX-License-Identifier: BSD-2-Clause

// Package published has the figures of the papers, as data. It embeds a copy of
// dashboards/published, because a module cannot embed files of another folder.
package published

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	"shai.dev/monitor/internal/bug"
)

//go:embed data/*.json
var files embed.FS

// Table is a table of a paper, or what a figure or a section of one says in numbers.
type Table struct {
	ID         string   `json:"id"`
	Paper      string   `json:"paper"`
	Place      string   `json:"place"` // in the paper
	Title      string   `json:"title"`
	Conditions string   `json:"conditions"`
	RowsAre    string   `json:"rowsAre"`
	Chart      string   `json:"chart,omitempty"` // how it is drawn; empty: not at all
	Axis       *Axis    `json:"axis,omitempty"`
	Needs      string   `json:"needs"` // what to do to have figures beside it
	Columns    []Column `json:"columns"`
	Rows       []Row    `json:"rows"`
	// CPUMillisecondsPerQuery is the CPU time of a query without enforcement; 0: not published.
	CPUMillisecondsPerQuery float64 `json:"cpuMillisecondsPerQuery,omitempty"`
}

// Axis is the vertical axis of a chart, which has the columns of its unit.
type Axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit"`
}

// Column says what a column is, and by which quantity of a run it can be compared.
type Column struct {
	Title    string `json:"title"`
	Unit     string `json:"unit,omitempty"`
	Text     bool   `json:"text,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Quantity string `json:"quantity,omitempty"`
}

// Row has a value for each column.
type Row struct {
	Name          string  `json:"name"`
	SessionLength *int    `json:"sessionLength,omitempty"`
	Measured      string  `json:"measured,omitempty"` // the quantity's part that belongs to this row
	Values        []Value `json:"values"`
}

// Value is a number, a text, or neither.
type Value struct {
	Number *float64
	Text   string
}

// UnmarshalJSON reads a number, a text or null.
func (v *Value) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &v.Text)
	}
	return json.Unmarshal(text, &v.Number)
}

// Tables returns all tables, in the order of their files.
func Tables() []Table {
	names, err := fs.Glob(files, "data/*.json")
	if err != nil {
		bug.Found("published: %v", err)
	}
	var tables []Table
	for _, name := range names {
		table, err := read(name)
		if err != nil {
			bug.Found("published/%s: %v", path.Base(name), err)
		}
		tables = append(tables, table)
	}
	return tables
}

func read(name string) (Table, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return Table{}, err
	}
	var table Table
	if err := json.Unmarshal(text, &table); err != nil {
		return Table{}, err
	}
	for _, row := range table.Rows {
		if len(row.Values) != len(table.Columns) {
			return Table{}, fmt.Errorf("row %q has %d values for %d columns", row.Name, len(row.Values), len(table.Columns))
		}
	}
	return table, nil
}
