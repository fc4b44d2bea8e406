// SPDX-License-Identifier: BSD-2-Clause

package published

import (
	"slices"
	"testing"
)

// Values are numbers in columns of numbers, texts in columns of texts, or not published.
func TestTables(t *testing.T) {
	tables := Tables()
	if tables[0].ID != "shai-table-1" || tables[0].CPUMillisecondsPerQuery == 0 {
		t.Errorf("the first table is %s, with %g ms for a query", tables[0].ID, tables[0].CPUMillisecondsPerQuery)
	}
	numbers, texts := 0, 0
	for _, table := range tables {
		for _, row := range table.Rows {
			for i, value := range row.Values {
				if value.Number != nil && (value.Text != "" || table.Columns[i].Text) || value.Text != "" && !table.Columns[i].Text {
					t.Errorf("%s, %s, %s: %+v", table.ID, row.Name, table.Columns[i].Title, value)
				}
				if value.Number != nil {
					numbers++
				} else if value.Text != "" {
					texts++
				}
			}
		}
	}
	if numbers < 80 || texts != 6 {
		t.Errorf("%d numbers and %d texts", numbers, texts)
	}
	faults := tables[slices.IndexFunc(tables, func(one Table) bool { return one.ID == "fault-injection" })]
	if said := faults.Rows[0].Values[0]; said.Text != "yes" {
		t.Errorf("a fault was stopped in the papers: %+v", said)
	}
}
