// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"shai.dev/monitor/internal/report/figure"
)

// hostile are names that users can choose.
var hostile = []string{
	`</script><script>document.title="stolen"</script>`, `"><img src=x onerror=document.title="stolen">`,
	"' onmouseover='document.title=1", "{{.Title}}", "javascript:document.title=1", "line\nbreak\r\n\ttab",
	"\u202egnp.exe", "\u2066isolated", "a\u2028b\u2029c", `\", "kind": "bars`, "👩‍👩‍👧",
	"\x00\xff\xfe", "]]>", "<!--", "--><b>", `\u003c/script\u003e`, "&lt;b&gt;", "`${1}`",
	strings.Repeat("n", 64<<10),
}

// table is a report with one figure of each kind, whose every text is a name.
func report(name string) figure.Report {
	r := figure.Report{Title: name, Subtitle: name, Version: name, Made: time.Unix(0, 0),
		Highlights: []figure.Highlight{{Value: name, Label: name, Remark: name}},
		Absent:     []figure.Absent{{What: name, Remedy: name}},
		Downloads:  []figure.Download{{Name: name, Title: name, Type: "text/csv", Content: []byte(name)}},
	}
	section := figure.Section{ID: "s", Title: name, Text: name}
	for _, kind := range []figure.Kind{
		"", figure.Bars, figure.Stack, figure.Curves, figure.Steps, figure.Points, figure.Time,
	} {
		f := figure.Figure{ID: "f-" + string(kind), Title: name, Caption: name, Kind: kind, Notes: []string{name},
			X: figure.Axis{Label: name, Unit: name}, Y: figure.Axis{Label: name, Unit: name},
			Columns: []figure.Column{{Title: name}, {Title: name + "2", Colour: "modes-" + name},
				{Title: "t", Text: true}},
		}
		for i := range 3 {
			f.Rows = append(f.Rows, figure.Row{Name: name, Cells: []figure.Cell{
				figure.Number(float64(i)), figure.Number(float64(i * i)), figure.Words(name)}})
		}
		section.Figures = append(section.Figures, f)
	}
	section.Figures[0].Graph = &figure.Graph{Nodes: []figure.Node{{Name: name, Kind: name, Remark: name},
		{Name: name, Kind: "task", Column: 1}, {Name: name, Kind: name, Column: 2}}, Edges: []figure.Edge{{From: 0, To: 1}, {From: 1, To: 0}}}
	r.Sections = []figure.Section{section}
	return r
}

// elements counts the elements and attributes of a page, and collects its texts, but for
// those of its own program, of which there are many, and the values of its attributes.
func elements(t *testing.T, page []byte) (counts map[string]int, texts string, values map[string][]string) {
	t.Helper()
	counts, values = map[string]int{}, map[string][]string{}
	page = bytes.Replace(page, []byte(charts), nil, 1)
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for node := range root.Descendants() {
		switch node.Type {
		case html.ElementNode:
			counts[node.Data]++
			for _, attribute := range node.Attr {
				counts["@"+attribute.Key]++
				values[attribute.Key] = append(values[attribute.Key], attribute.Val)
			}
		case html.TextNode:
			all.WriteString(node.Data)
		}
	}
	return counts, all.String(), values
}

// axes of a chart, as its program reads them.
type axes struct {
	Kind string
	X, Y figure.Axis
}

// A name of any characters is a text: it makes no element and no attribute, and arrives at
// the charts' program as it is shown.
func TestHostileNames(t *testing.T) {
	page, err := Render(report("plain"))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := elements(t, page)
	for _, name := range hostile {
		page, err := Render(report(name))
		if err != nil {
			t.Fatalf("%.40q: %v", name, err)
		}
		found, texts, values := elements(t, page)
		if fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("%.40q: elements and attributes\n%v, want\n%v", name, found, want)
		}
		if !strings.Contains(texts, visible(name)) {
			t.Errorf("%.40q is not shown", name)
		}
		attributes := strings.Join(slices.Concat(slices.Collect(maps.Values(values))...), "")
		if strings.ContainsAny(texts+attributes, shapeless) {
			t.Errorf("%.40q: characters without a shape are in the page", name)
		}
		if label := values["aria-label"]; !slices.ContainsFunc(label, func(one string) bool {
			return strings.HasPrefix(one, "Chart: "+visible(name)+". The table")
		}) {
			t.Errorf("%.40q names no chart for screen readers", name)
		}
		charts := values["data-chart"]
		if len(charts) != 6 {
			t.Errorf("%.40q: %d charts", name, len(charts))
		}
		for _, text := range charts {
			var read axes
			if err := json.Unmarshal([]byte(text), &read); err != nil {
				t.Errorf("%.40q: the program cannot read %.80s: %v", name, text, err)
			}
			axis := figure.Axis{Label: visible(name), Unit: visible(name)}
			if want := (axes{read.Kind, axis, axis}); read != want {
				t.Errorf("%.40q: a chart has %.200v", name, read)
			}
		}
	}
}

// shapeless are characters that must not be in a page.
const shapeless = "\x00\u202e\u2066\u2028\u2029\u200d\u202f"

// The policy allows the page's own program and stylesheet, by their hashes, and nothing else.
func TestPolicy(t *testing.T) {
	page, err := Render(report("plain"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	policy, inline := "", map[string]string{}
	for node := range root.Descendants() {
		if node.Data == "script" || node.Data == "style" {
			inline[node.Data] = node.FirstChild.Data
		}
		for _, attribute := range node.Attr {
			if node.Data == "meta" && attribute.Key == "content" && strings.Contains(attribute.Val, "default-src") {
				policy = attribute.Val
			}
			if attribute.Key == "style" || strings.HasPrefix(attribute.Key, "on") {
				t.Errorf("<%s %s=…> is inline, and the policy forbids it", node.Data, attribute.Key)
			}
			if strings.HasPrefix(attribute.Val, "http") {
				t.Errorf("<%s %s=%q> needs the network", node.Data, attribute.Key, attribute.Val)
			}
		}
	}
	want := "default-src 'none'; script-src " + hash(inline["script"]) + "; style-src " + hash(inline["style"]) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
	if policy != want {
		t.Errorf("policy %s, want %s", policy, want)
	}
}

// The page stays within its size: raw data are compressed, then left out; too many
// figures are an error.
func TestSize(t *testing.T) {
	r := report("plain")
	source := rand.NewChaCha8([32]byte{1})
	random := make([]byte, Largest)
	_, _ = source.Read(random)
	for _, test := range []struct {
		name     string
		content  []byte
		has, not string
	}{
		{"small", []byte("raw"), `download="plain"`, ".gz"},
		{"repetitive", bytes.Repeat([]byte("a,b,c\n"), Largest/6), `download="plain.gz"`, "would make this file too large"},
		{"random", random, "would make this file too large", "download="},
	} {
		r.Downloads[0].Content = test.content
		page, err := Render(r)
		if err != nil {
			t.Fatal(err)
		}
		body := string(page[:bytes.Index(page, []byte("<script>"))])
		if len(page) > Largest || !strings.Contains(body, test.has) || strings.Contains(body, test.not) {
			t.Errorf("%s: %d bytes; has %q: %t; has %q: %t", test.name, len(page), test.has, strings.Contains(body, test.has),
				test.not, strings.Contains(body, test.not))
		}
	}
	for range 100 {
		r.Sections = append(r.Sections, report(strings.Repeat("n", 1000)).Sections...)
	}
	if page, err := Render(r); err == nil {
		t.Errorf("%d bytes, and no error", len(page))
	}
}

// A download is the file that was given.
func TestDownload(t *testing.T) {
	r := report("plain")
	r.Downloads[0].Content = []byte("a,\"b\"\n👩\n")
	page, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	want, found := "data:text/csv;base64,"+base64.StdEncoding.EncodeToString(r.Downloads[0].Content), false
	for node := range root.Descendants() {
		for _, attribute := range node.Attr {
			found = found || node.Data == "a" && attribute.Key == "href" && attribute.Val == want
		}
	}
	if !found {
		t.Errorf("no link to %s", want)
	}
}

// No figure has an empty place beside it.
func TestWide(t *testing.T) {
	half, whole := figure.Figure{Kind: figure.Bars}, figure.Figure{Kind: figure.Time}
	for _, test := range []struct {
		figures []figure.Figure
		want    []bool
	}{
		{nil, []bool{}},
		{[]figure.Figure{half}, []bool{true}},
		{[]figure.Figure{half, half}, []bool{false, false}},
		{[]figure.Figure{half, half, half}, []bool{false, false, true}},
		{[]figure.Figure{half, whole, half, half, whole}, []bool{true, true, false, false, true}},
		{[]figure.Figure{half, half, half, whole, half}, []bool{false, false, true, true, true}},
	} {
		if found := wide(test.figures); !slices.Equal(found, test.want) {
			t.Errorf("%d figures: %v, want %v", len(test.figures), found, test.want)
		}
	}
}

// What has no shape is shown, and what is too long is cut.
func TestVisible(t *testing.T) {
	for name, want := range map[string]string{
		"bob": "bob", "line\nbreak": `line\nbreak`, "\u202egnp": `\u202egnp`, "\xff": `\xff`, "👩\u200d👧": `👩\u200d👧`,
		"1\u202f000":                   `1\u202f000`,
		strings.Repeat("é", longest):   strings.Repeat("é", longest),
		strings.Repeat("é", longest+1): strings.Repeat("é", longest) + "…",
	} {
		if found := visible(name); found != want {
			t.Errorf("%q is shown as %q, want %q", name, found, want)
		}
	}
}
