// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"shai.dev/monitor/internal/report/figure"
)

// A drawing alone is well-formed XML, has the colours of its stylesheet as values, and shows
// names as text.
func TestDrawingAlone(t *testing.T) {
	hostile := "</svg><script>"
	text, err := SVG(figure.Graph{
		Nodes: []figure.Node{{Name: "reader", Kind: "task"}, {Name: hostile, Kind: "file", Column: 1},
			{Name: "far", Kind: "file", Column: 2}},
		Edges: []figure.Edge{{From: 0, To: 1, Label: "3 of 4", State: figure.Partial},
			{From: 0, To: 2, State: figure.Blocked}, {From: 1, To: 0, State: figure.Open, Label: hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for decoder := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok {
			names[start.Name.Local]++
		}
	}
	if names["script"] > 0 || names["g"] != 3 || names["path"] != 4 {
		t.Errorf("elements: %v", names)
	}
	for _, never := range []string{"var(", "light-dark", ": ;"} {
		if strings.Contains(string(text), never) {
			t.Errorf("%q is in\n%s", never, text)
		}
	}
	for _, part := range []string{"3 of 4", `class="edge partial"`, `class="edge blocked"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
