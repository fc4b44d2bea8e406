// SPDX-License-Identifier: BSD-2-Clause

package shape

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// Lines is Visible for a text of several lines, whose line breaks stay.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Visible(line)
	}
	return strings.Join(lines, "\n")
}

// Table writes rows with aligned columns; no cell has another line, or what has no shape.
func Table(rows [][]string) string {
	var text, trimmed strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Visible(cell)
		}
		fmt.Fprintln(aligned, strings.Join(cells, "\t"))
	}
	aligned.Flush()
	for line := range strings.Lines(text.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n") // only now: the tabs of empty cells align other lines
	}
	return trimmed.String()
}
