// SPDX-License-Identifier: BSD-2-Clause

// Package page writes a report as one HTML file that needs no network, and no program to
// be read: its tables are all there without JavaScript.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"shai.dev/monitor/internal/look"
	"shai.dev/monitor/internal/report/figure"
)

// Largest is the size of the largest page, in bytes.
const Largest = 2_000_000

var (
	//go:embed page.html
	text string
	//go:embed page.css
	rules string
	// charts is built from dashboards/web/report by dashboards/web/build.mjs.
	//go:embed charts.js
	charts string
	// licences are those of what charts.js has of others.
	//go:embed charts.licences.txt
	licences string

	page = template.Must(template.New("page").Funcs(template.FuncMap{
		"chart": chart, "colour": colour, "visible": visible, "wide": wide, "table": tableOf,
		"drawing": draw, "link": link, "minor": minor,
	}).Parse(text))
)

// content is what the template shows.
type content struct {
	figure.Report
	Policy   string
	Style    template.CSS
	Script   template.JS
	Licences string
	LeftOut  bool // the downloads
}

// Render writes the page. If it would be larger than Largest, its downloads are compressed,
// and left out if that is not enough.
func Render(report figure.Report) ([]byte, error) {
	style := look.Stylesheet() + rules
	shown := content{
		Report: report,
		Policy: "default-src 'none'; script-src " + hash(charts) + "; style-src " + hash(style) +
			"; img-src data:; base-uri 'none'; form-action 'none'",
		Style:    template.CSS(style), //nolint:gosec // embedded, not from files of users
		Script:   template.JS(charts), //nolint:gosec // embedded, not from files of users
		Licences: licences,
	}
	for _, fit := range []func(){
		func() {},
		func() { shown.Downloads = compressed(report.Downloads) },
		func() { shown.Downloads, shown.LeftOut = nil, true },
	} {
		fit()
		var built bytes.Buffer
		if err := page.Execute(&built, shown); err != nil {
			return nil, fmt.Errorf("write the page: %w", err)
		}
		if built.Len() <= Largest {
			return built.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("the report would be larger than %d bytes: give fewer results, or a shorter range", Largest)
}

// hash is the source expression by which a policy allows a script or a stylesheet.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func compressed(downloads []figure.Download) []figure.Download {
	var smaller []figure.Download
	for _, download := range downloads {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, _ = writer.Write(download.Content) // a buffer takes everything
		_ = writer.Close()
		download.Name += ".gz"
		download.Type, download.Content = "application/gzip", packed.Bytes()
		smaller = append(smaller, download)
	}
	return smaller
}

// link is the address of a file inside the page.
func link(download figure.Download) template.URL {
	address := "data:" + download.Type + ";base64," + base64.StdEncoding.EncodeToString(download.Content)
	return template.URL(address) //nolint:gosec // of types that no browser shows as a page, and base64
}

// chart says how to draw a figure; empty if there is nothing to draw.
func chart(f figure.Figure) (string, error) {
	if f.Kind == "" || f.Empty() {
		return "", nil
	}
	axis := func(a figure.Axis) figure.Axis {
		return figure.Axis{Label: visible(a.Label), Unit: visible(a.Unit), Log: a.Log}
	}
	about, err := json.Marshal(map[string]any{"kind": f.Kind, "x": axis(f.X), "y": axis(f.Y), "stacked": f.Stacked})
	return string(about), err
}

// colour returns the name of a variable of the stylesheet; empty for one that it does not have.
func colour(name string) string {
	group, member, _ := strings.Cut(name, "-")
	if _, known := look.Colours()[group][member]; !known {
		return ""
	}
	return name
}

// crowded is the number of columns from which a table needs the whole width; one of texts
// counts as three.
const crowded = 6

// wide reports which figures of a section take the whole width: those that need it, and
// those that would have nothing beside them.
func wide(figures []figure.Figure) []bool {
	found := make([]bool, len(figures))
	half := -1 // what has nothing beside it yet
	for i, f := range figures {
		found[i] = large(f)
		switch {
		case half < 0 && !found[i]:
			half = i
		case half >= 0:
			found[half] = found[i]
			half = -1
		}
	}
	if half >= 0 {
		found[half] = true
	}
	return found
}

// long is the number of rows from which a table without a chart needs the whole width: in
// half of it they take two lines each, and what is beside it is short.
const long = 10

// large reports whether a figure needs the whole width.
func large(f figure.Figure) bool {
	columns := len(f.Columns)
	for _, column := range f.Columns {
		if column.Text {
			columns += 2
		}
	}
	table := f.Kind == "" || f.Empty()
	return f.Kind == figure.Time || f.Kind == figure.Points || f.Kind == figure.Curves || f.Graph != nil ||
		table && (columns >= crowded || len(f.Rows) > long)
}

// shownTable is a table as the template shows it.
type shownTable struct {
	figure.Figure
	Folded bool // in <details>: a chart shows the same
	Thin   bool // only a part of the rows is printed
}

// thin is the number of rows above which only every tenth is printed.
const thin = 60

func tableOf(f figure.Figure) shownTable {
	curves := f.Kind == figure.Time || f.Kind == figure.Steps
	return shownTable{f, f.Kind != "" && !f.Empty() || f.Graph != nil, curves && len(f.Rows) > thin}
}

// minor reports whether a row of a thin table is not printed: all but every tenth and the last.
func minor(t shownTable, row int) bool { return t.Thin && row%10 != 0 && row != len(t.Rows)-1 }
