// SPDX-License-Identifier: BSD-2-Clause

// Package boards reads the panels of the dashboard Overhead from Prometheus, by the
// dashboard's own queries.
package boards

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"shai.dev/monitor/internal/bug"
)

// table is written by python -m dashboards generate from dashboards/queries.
//
//go:embed queries.json
var table []byte

// Panel is a panel of the dashboard.
type Panel struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Kind        string   `json:"kind"` // as dashboards/model.py has them
	Instant     bool     `json:"instant"`
	Stacked     bool     `json:"stacked"`
	Colours     string   `json:"colours"` // group of the table of colours
	Across      string   `json:"across"`  // label of the groups of bars
	By          string   `json:"by"`      // label of the bars of a group
	Columns     []Column `json:"columns"`
	Queries     []Query  `json:"queries"`
}

// Column is a label that a table shows.
type Column struct {
	Label string `json:"label"`
	Title string `json:"title"`
}

// Query is a PromQL expression with Grafana's variables.
type Query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legend"` // {{label}} stands for a label's value
	Unit   string `json:"unit"`   // in Grafana's names
}

// panels returns those of the dashboard, and those that only the report has.
func panels() (overhead, beside []Panel) {
	var all struct {
		Panels []Panel `json:"panels"`
		Beside []Panel `json:"beside"`
	}
	if err := json.Unmarshal(table, &all); err != nil {
		bug.Found("queries.json: %v", err)
	}
	return all.Panels, all.Beside
}

// variables are what a user of the dashboard chooses from; the report takes all.
var variables = []string{"cluster", "namespace", "pipeline", "mode", "member"}

// anything matches every value of a label: a dot alone does not match a line break.
const anything = "(?s:.*)"

// expression replaces Grafana's variables in a query.
func expression(query string, length, step, scrape time.Duration) string {
	seconds := func(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }
	// As Grafana has it: a window with at least four samples.
	rate := max(step+scrape, 4*scrape)
	replaced := []string{"$__rate_interval", seconds(rate), "$__range", seconds(max(length, time.Second))}
	for _, name := range variables {
		replaced = append(replaced, "$"+name, anything)
	}
	return strings.NewReplacer(replaced...).Replace(query)
}

// Name fills in a legend.
func Name(legend string, labels map[string]string) string {
	var name strings.Builder
	for {
		before, rest, found := strings.Cut(legend, "{{")
		name.WriteString(before)
		if !found {
			return name.String()
		}
		label, after, _ := strings.Cut(rest, "}}")
		name.WriteString(labels[strings.TrimSpace(label)])
		legend = after
	}
}
