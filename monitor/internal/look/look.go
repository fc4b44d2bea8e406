// SPDX-License-Identifier: BSD-2-Clause

// Package look is what Shai's pages have in common: a stylesheet, and one colour for
// each mode, result and part of a pipeline, the same as in the dashboards.
package look

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/bug"
)

var (
	//go:embed look.css
	rules string
	//go:embed colours.json
	table []byte
)

// Colour is a colour on the grounds of both schemes, as #rrggbb.
type Colour struct {
	Light string `json:"light"`
	Dark  string `json:"dark"`
}

// Table has the colours by group (modes, results, parts) and name.
type Table map[string]map[string]Colour

// Colours returns the table.
func Colours() Table {
	var colours Table
	if err := json.Unmarshal(table, &colours); err != nil {
		bug.Found("colours.json: %v", err)
	}
	return colours
}

// Stylesheet returns the rules of all pages. Each colour of the table is a variable:
// --modes-shai. The scheme is the browser's, or that of the attribute data-scheme of
// the root element: light or dark.
func Stylesheet() string {
	var text strings.Builder
	text.WriteString(rules)
	text.WriteString(":root {\n")
	colours := Colours()
	for _, group := range slices.Sorted(maps.Keys(colours)) {
		for _, name := range slices.Sorted(maps.Keys(colours[group])) {
			colour := colours[group][name]
			fmt.Fprintf(&text, "  --%s-%s: light-dark(%s, %s);\n", group, name, colour.Light, colour.Dark)
		}
	}
	text.WriteString("}\n")
	return text.String()
}
