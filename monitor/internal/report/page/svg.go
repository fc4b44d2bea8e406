// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"shai.dev/monitor/internal/look"
	"shai.dev/monitor/internal/report/figure"
)

// SVG writes a drawing as a file of its own, in the light scheme: programs that show such files
// know neither schemes nor variables of stylesheets.
func SVG(graph figure.Graph) ([]byte, error) {
	var built bytes.Buffer
	err := page.ExecuteTemplate(&built, "svg", struct {
		Drawing drawing
		Style   template.CSS
	}{draw("flow", graph), template.CSS(drawingStyle())}) //nolint:gosec // embedded, not from files of users
	if err != nil {
		return nil, fmt.Errorf("write the drawing: %w", err)
	}
	return built.Bytes(), nil
}

var (
	definition = regexp.MustCompile(`(?m)^\s*(--[a-z-]+): (.*);$`)
	lightOnly  = regexp.MustCompile(`light-dark\(([^,()]*),[^()]*\)`)
	reference  = regexp.MustCompile(`var\((--[a-z-]+)\)`)
)

// drawingStyle is the part of the pages' stylesheet that is about drawings, with the values of
// its variables.
func drawingStyle() string {
	values := map[string]string{}
	for _, found := range definition.FindAllStringSubmatch(look.Stylesheet(), -1) {
		values[found[1]] = lightOnly.ReplaceAllString(found[2], "$1")
	}
	style := ".flow .ground { fill: var(--card); stroke: none; }\n"
	for line := range strings.Lines(rules) {
		if strings.HasPrefix(line, ".flow ") && !strings.HasPrefix(line, ".flow {") {
			style += line
		}
	}
	return reference.ReplaceAllStringFunc(style, func(one string) string {
		return values[reference.FindStringSubmatch(one)[1]]
	})
}
