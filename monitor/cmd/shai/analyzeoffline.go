// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/report"
	"shai.dev/monitor/internal/report/page"
)

// drawnFlags say where to draw the flows of manifests.
type drawnFlags struct{ html, svg, at string }

func (f *drawnFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.html, "html", "", "with -f: HTML file to write, which needs no network")
	flags.StringVar(&f.svg, "svg", "", "with -f: SVG file to write, with the drawing of the flows")
	flags.StringVar(&f.at, "time", "", "with -f: an RFC 3339 time instead of now")
}

func (f *drawnFlags) any() bool { return f.html != "" || f.svg != "" || f.at != "" }

// analyzeOffline analyses manifests.
func (p *program) analyzeOffline(ctx context.Context, flags offlineFlags, drawn drawnFlags, pipeline string,
	picture bool) error {
	now, err := instantOf(drawn.at)
	if err != nil {
		return err
	}
	return p.offline(ctx, flags, offline.Options{Examples: true}, func(project *offline.Project) error {
		found, err := project.Analyze(ctx, pipeline, now)
		if err != nil {
			return err
		}
		missing := slices.Clone(project.Missing)
		for _, task := range withoutInstances(found.Analysis) {
			missing = append(missing, noInstance([]string{task})+": give the facts about users, with --data or --facts")
		}
		p.tellChoices(found.Choices)
		if err := draw(drawn, found, missing, now); err != nil {
			return err
		}
		if picture {
			_, err = io.WriteString(p.stdout, found.Mermaid)
			return err
		}
		return p.print(found, func(w io.Writer) { printAnalysis(w, found.Analysis, flags.data != "") })
	})
}

// draw writes the files that show the flows.
func draw(drawn drawnFlags, found offline.Analysis, missing []string, now time.Time) error {
	if drawn.html == "" && drawn.svg == "" {
		return nil
	}
	made := report.ComposeCoverage(report.Coverage{Plan: found.Plan, Found: found.Found, Missing: missing, Made: now,
		Version: edition.Version()})
	if drawn.html != "" {
		text, err := page.Render(made)
		if err != nil {
			return err
		}
		if err := replaceFile(drawn.html, text, ownersOnly); err != nil {
			return err
		}
	}
	if drawn.svg == "" {
		return nil
	}
	graph := made.Sections[0].Figures[0].Graph
	if graph == nil {
		return errors.New("--svg: the pipeline has too many tasks and conduits for a drawing; its tables are in --html")
	}
	text, err := page.SVG(*graph)
	if err != nil {
		return err
	}
	return replaceFile(drawn.svg, text, ownersOnly)
}
