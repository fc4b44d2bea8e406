// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) analyzeCommand() *cobra.Command {
	var request api.AnalyzeRequest
	var latest bool
	var report string
	command := &cobra.Command{
		Use:   "analyze",
		Short: "Run the offline analysis and show what it covers",
		Long: `Run the offline analysis: decide for every task instance and every access expected of
it whether the policies allow it, and let those that are allowed run natively.

The table says how many of the expected accesses were validated. Flows that are not
are listed with the obligation that blocks them.`,
		Example: `  shai analyze
  shai analyze --pipeline syse --report mermaid > flows.mmd
  shai analyze --latest --output json`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			if report == "json" {
				p.output = "json"
			}
			return p.analyze(ctx, request, latest, report)
		}),
		PreRunE: func(*cobra.Command, []string) error {
			switch report {
			case "", "text", "mermaid", "json":
				return nil
			}
			return fmt.Errorf("--report %q is not known; expected text, mermaid or json", report)
		},
	}
	command.Flags().StringVar(&request.Pipeline, "pipeline", "", "pipeline to analyse; may be left out when there is one")
	command.Flags().BoolVar(&request.Full, "full", false, "do not reuse earlier results")
	command.Flags().StringVar(&request.Scope, "scope", api.ScopeAll, "all, or active: only instances with an open session")
	command.Flags().BoolVar(&latest, "latest", false, "show the result in force instead of running")
	command.Flags().StringVar(&report, "report", "", "print the flows as text, mermaid (a picture) or json")
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	return command
}

func (p *program) analyze(ctx context.Context, request api.AnalyzeRequest, latest bool, report string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	var result api.Analysis
	if latest {
		result, err = client.LatestAnalysis(ctx, request.Pipeline)
	} else {
		result, err = client.Analyze(ctx, request, p.progress())
		p.endProgress()
	}
	if err != nil {
		return err
	}
	switch report {
	case "mermaid":
		_, err = io.WriteString(p.stdout, result.Mermaid)
		return err
	case "text":
		_, err = io.WriteString(p.stdout, result.Text)
		return err
	}
	return p.print(result, func(w io.Writer) { printAnalysis(w, result) })
}

// progress draws a line that overwrites itself, on a terminal only.
func (p *program) progress() func(api.Progress) {
	if !isTerminal(p.stderr) {
		return nil
	}
	return func(step api.Progress) {
		of := ""
		if step.Total > 0 {
			of = " of " + grouped(step.Total)
		}
		fmt.Fprintf(p.stderr, "\r\x1b[K%s: %s%s", step.Phase, grouped(step.Done), of)
	}
}

func (p *program) endProgress() {
	if isTerminal(p.stderr) {
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
}

func printAnalysis(w io.Writer, a api.Analysis) {
	fmt.Fprintf(w, "pipeline %s, bundle %d: %s conduits in %s classes, %s instances, %s\n\n", a.Pipeline, a.Bundle,
		grouped(a.Conduits), grouped(a.Classes), grouped(a.Instances), time.Duration(a.DurationMicroseconds)*time.Microsecond)
	rows := [][]string{{"TASK", "ACCESS", "CONDUITS", "INSTANCES", "EXPECTED", "VALIDATED", "COVERAGE"}}
	for _, c := range a.Coverage {
		rows = append(rows, []string{c.Task, c.Access, c.Conduits, grouped(c.Instances), grouped(c.Expected), grouped(c.Validated),
			share(c.Validated, c.Expected)})
	}
	table(w, rows)
	if a.BlockedTotal == 0 {
		fmt.Fprintln(w, "\nno expected flow is blocked")
		return
	}
	fmt.Fprintf(w, "\nblocked flows: %s\n", grouped(a.BlockedTotal))
	for _, flow := range a.Blocked {
		may := "may not"
		if flow.Mode != "" {
			may = "may, because the policy is in mode " + flow.Mode + ","
		}
		fmt.Fprintf(w, "  %s %s %s %s", flow.Instance, may, flow.Access, flow.Conduit)
		if flow.Count > 1 {
			fmt.Fprintf(w, " (and %s like it)", grouped(flow.Count-1))
		}
		fmt.Fprintf(w, "\n    policy %s: %s\n", flow.Policy, flow.Obligation)
		if flow.Suggestion != "" {
			fmt.Fprintf(w, "    it would pass with: %s\n", flow.Suggestion)
		}
	}
	if hidden := a.BlockedTotal - uint64(len(a.Blocked)); hidden > 0 && hidden <= a.BlockedTotal {
		fmt.Fprintf(w, "  … and %s more\n", grouped(hidden))
	}
}

// share is a percentage that says 100 only when nothing is missing.
func share(part, whole uint64) string {
	if whole == 0 || part == whole {
		return "100 %"
	}
	return fmt.Sprintf("%.2f %%", min(99.99, 100*float64(part)/float64(whole)))
}
