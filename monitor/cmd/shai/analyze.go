// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) analyzeCommand() *cobra.Command {
	var request api.AnalyzeRequest
	var latest, picture bool
	var manifests offlineFlags
	var drawn drawnFlags
	command := &cobra.Command{
		Use:   "analyze",
		Short: "Run the offline analysis and show what is granted",
		Long: `Run the offline analysis: decide for every task instance and each of its expected
accesses whether the policies allow it. Allowed accesses then run natively.

The table says how many of the expected accesses are granted, how many a policy
refuses, and how many are undecided: the monitor decides them when they happen.
Policies exist to refuse accesses, so a refusal is no fault by itself. A warning
is one: it names a task that cannot start, or that is refused all conduits of a set
that it lists. For a refusal, the smallest change of the policy is shown that would open it.

With -f the analysis is of these manifests, without a monitor. --html writes a page that shows
the flows and what blocks them, --svg the drawing alone.`,
		Example: `  shai analyze
  shai analyze --pipeline syse --picture > flows.mmd
  shai analyze --latest --output json
  shai analyze -f crds/examples/syse --data /srv/data --html flows.html`,
		Args: cobra.NoArgs,
		PreRunE: func(command *cobra.Command, _ []string) error {
			given, err := manifests.given(command)
			if err == nil && !given && drawn.any() {
				err = errors.New("--html, --svg and --time are of manifests; name them with -f")
			}
			if err == nil && given && (latest || command.Flags().Changed("scope") || request.Full) {
				err = errors.New("-f is without a monitor: it has no --latest, --scope and --full")
			}
			return err
		},
		RunE: p.does(func(ctx context.Context, _ []string) error {
			if len(manifests.files) > 0 {
				return p.analyzeOffline(ctx, manifests, drawn, request.Pipeline, picture)
			}
			return p.analyze(ctx, request, latest, picture)
		}),
	}
	command.Flags().StringVar(&request.Pipeline, "pipeline", "",
		"pipeline to analyse; optional if there is only one")
	command.Flags().BoolVar(&request.Full, "full", false, "do not reuse earlier results")
	command.Flags().StringVar(&request.Scope, "scope", api.ScopeAll,
		"all, or active: only instances with an open session")
	command.Flags().BoolVar(&latest, "latest", false, "show the result in force instead of running")
	command.Flags().BoolVar(&picture, "picture", false, "print the flows as a Mermaid diagram")
	manifests.add(command)
	drawn.add(command)
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	command.AddCommand(p.analyzeExportCommand(), p.analyzeShardCommand(), p.analyzeImportCommand(),
		p.analyzeDistributeCommand(), p.analyzeWorkerCommand())
	return command
}

func (p *program) analyze(ctx context.Context, request api.AnalyzeRequest, latest, picture bool) error {
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
	if picture {
		_, err = io.WriteString(p.stdout, result.Mermaid)
		return err
	}
	return p.print(result, func(w io.Writer) { printAnalysis(w, result, true) })
}

// progress returns a function that draws a line that overwrites itself. It draws on a
// terminal only.
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

// printAnalysis prints what an analysis has found. complete says that it knew all facts: which users there are.
func printAnalysis(w io.Writer, a api.Analysis, complete bool) {
	fmt.Fprintf(w, "pipeline %s, bundle %d: %s in %s, %s, %s\n\n", a.Pipeline, a.Bundle,
		counted(a.Conduits, "conduit"), counted(a.Classes, "class"), counted(a.Instances, "instance"),
		time.Duration(a.DurationMicroseconds)*time.Microsecond)
	rows := [][]string{{"TASK", "ACCESS", "CONDUITS", "INSTANCES", "EXPECTED", "GRANTED", "REFUSED", "UNDECIDED"}}
	for _, one := range a.Accesses {
		rows = append(rows, []string{one.Task, one.Access, one.Conduits, grouped(one.Instances), grouped(one.Expected),
			grouped(one.Granted), grouped(one.Refused), grouped(one.Undecided)})
	}
	table(w, rows)
	printShare(w, a, complete)
	if a.Refused > 0 {
		fmt.Fprintf(w, "\nrefused by policies: %s\n", grouped(a.Refused))
		for _, one := range a.Accesses {
			printCauses(w, one, one.RefusedBecause, "refuses")
		}
	}
	if a.Undecided > 0 {
		fmt.Fprintf(w, "\nundecided until they happen: %s\n", grouped(a.Undecided))
		for _, one := range a.Accesses {
			printCauses(w, one, one.UndecidedBecause, "leaves undecided")
		}
	}
	for _, warning := range a.Warnings {
		printWarning(w, warning)
	}
}

func printCauses(w io.Writer, accesses api.Accesses, causes []api.Cause, does string) {
	for _, cause := range causes {
		mode := ""
		if cause.Mode != "" {
			mode = fmt.Sprintf("; in mode %s these happen all the same, and are recorded", cause.Mode)
		}
		fmt.Fprintf(w, "  %s %ss %s: policy %s %s %s%s\n", accesses.Task, accesses.Access, accesses.Conduits,
			either(cause.Policy, "(none)"), does, grouped(cause.Count), mode)
		fmt.Fprintf(w, "    such as %s of %s by %s\n    %s\n", accesses.Access, printable(cause.Conduit),
			printable(cause.Instance), printable(cause.Reason))
		if cause.Suggestion != "" {
			fmt.Fprintf(w, "    it would be allowed with: %s\n", printable(cause.Suggestion))
		}
	}
}

func printWarning(w io.Writer, warning api.Warning) {
	fmt.Fprintf(w, "\nwarning: %s\n", printable(warning.Message))
	if warning.Instances > 1 {
		fmt.Fprintf(w, "  the same holds for %s of the task in all\n", counted(warning.Instances, "instance"))
	}
	if warning.Suggestion != "" {
		fmt.Fprintf(w, "  it would be allowed with: %s\n", printable(warning.Suggestion))
	}
}

// printShare prints the share of the expected accesses that is granted, if there is something of which it is one.
func printShare(w io.Writer, a api.Analysis, complete bool) {
	idle := withoutInstances(a)
	switch {
	case len(idle) > 0 && !complete:
		fmt.Fprintf(w, "\n%s, so there is no share of the expected accesses to print:\n"+
			"name the directory that has the facts about users with --data, or give these with --facts\n", noInstance(idle))
		return
	case len(idle) > 0:
		fmt.Fprintf(w, "\n%s: none of their accesses is counted.\n", noInstance(idle))
	}
	if a.Expected == 0 {
		fmt.Fprintf(w, "\nno access is expected\n")
		return
	}
	fmt.Fprintf(w, "\n%s of the expected accesses are granted: they need no monitor.\n", share(a.Granted, a.Expected))
}

// withoutInstances lists the tasks of which no instance is expected. One of which none can start has a warning.
func withoutInstances(a api.Analysis) (tasks []string) {
	for _, one := range a.Accesses {
		cannotStart := func(w api.Warning) bool { return w.Task == one.Task && w.Access == "" }
		if one.Instances == 0 && !slices.Contains(tasks, one.Task) && !slices.ContainsFunc(a.Warnings, cannotStart) {
			tasks = append(tasks, one.Task)
		}
	}
	return tasks
}

func noInstance(tasks []string) string {
	return "no instance of " + strings.Join(tasks, " and of ") + " is known"
}

// share returns a percentage, which is 100 only if nothing is missing.
func share(part, whole uint64) string {
	if part == whole {
		return "100 %"
	}
	return fmt.Sprintf("%.2f %%", min(99.99, 100*float64(part)/float64(whole)))
}
