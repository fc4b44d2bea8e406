// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// besideSearches shows what other tasks did while users searched; false if there were none.
func besideSearches(prefix string, counted *sources.BesideSearches) (figure.Figure, bool) {
	f := figure.Figure{
		ID: prefix + "-beside", Title: "Beside searches",
		Caption: "What the support and the task of interests did while users searched, at the end and in no other figure. " +
			"Each document was read after its own entry in the log, and all advertisements are about their users' topics: " +
			"otherwise the measurement fails.",
		X: figure.Axis{Label: "what"}, Columns: []figure.Column{{Title: "number"}},
	}
	add := func(name string, number float64) {
		f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{figure.Number(number)}})
	}
	if counted != nil && counted.Support != nil {
		add("documents of users that the support read", float64(counted.Support.Read))
		add("new entries of the log of accesses", float64(counted.Support.Logged))
		add("accesses of the support that were refused", float64(counted.Support.Refused))
		for _, part := range []string{"p50", "p99"} {
			if milliseconds, known := counted.Support.Milliseconds[part]; known {
				add("an access of the support with its login, ms ("+part+")", milliseconds)
			}
		}
	}
	if counted != nil && counted.Interests != nil {
		add("users who had topics made of their histories", float64(counted.Interests.Users))
		add("advertisements that they saw", float64(counted.Interests.Advertisements))
	}
	return f, len(f.Rows) > 0
}

// besideVersion compares this version with another one; false if there was none.
func besideVersion(prefix string, measured *sources.Beside) (figure.Figure, bool) {
	if measured == nil {
		return figure.Figure{}, false
	}
	return figure.Figure{
		ID: prefix + "-beside", Title: "Beside another version",
		Caption: "This version in mode shai, and beside it mode shai of " + cmp.Or(measured.Commit, "another checkout") +
			", measured in the same rounds with the same data and load.",
		X: figure.Axis{Label: "what"}, Columns: []figure.Column{{Title: "this version"}},
		Rows: []figure.Row{
			{Name: "sessions per second, as a multiple of the other's", Cells: []figure.Cell{optional(measured.Rate)}},
			{Name: "CPU time that a session takes less, µs", Cells: []figure.Cell{optional(measured.Saved)}},
		},
	}, true
}
