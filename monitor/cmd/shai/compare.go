// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) compareCommand() *cobra.Command {
	var files []string
	var request api.CompareRequest
	command := &cobra.Command{
		Use:   "compare -f FILE",
		Short: "Show which flows manifests would open and close",
		Long: `Show which flows manifests would open and close, and which users and documents this
affects, before they are applied. Nothing changes.

A flow is one expected access of one task instance to one conduit. Flows that only a
policy in mode Audit or Warn would forbid are listed separately: they stay open. So are
flows that stay closed until somebody chooses another policy for a document, and that
no choice could open before. If a policy asks for those of other documents, a choice for some
documents may open more than is listed: it says so.

Flows are what policies allow in any mode of the pipeline. Changes of modes, of policies and of
pipelines, are listed with what happens to accesses that are forbidden: in mode audit they happen.`,
		Example: `  shai compare -f crds/examples/syse
  shai compare -f policies.yaml --output json`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			sources, err := manifest.Read(p.stdin, files...)
			if err != nil {
				return err
			}
			request.Sources = sources
			return p.compare(ctx, request)
		}),
	}
	fileFlag(command, &files)
	command.Flags().BoolVar(&request.Prune, "prune", false, "as if applied with --prune")
	return command
}

func (p *program) compare(ctx context.Context, request api.CompareRequest) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	result, err := client.Compare(ctx, request, p.progress())
	p.endProgress()
	if err != nil {
		return err
	}
	return p.print(result, func(w io.Writer) { printComparison(w, result) })
}

func printComparison(w io.Writer, c api.Comparison) {
	fmt.Fprintf(w, "bundle %.12s to %.12s: %s flows before, %s after, %s\n", either(c.From, "none"), c.To,
		grouped(c.FlowsBefore), grouped(c.FlowsAfter),
		time.Duration(c.DurationMicroseconds)*time.Microsecond)
	printFlows(w, "opened", c.Opened, c.OpenedTotal)
	printFlows(w, "closed", c.Closed, c.ClosedTotal)
	printFlows(w, "would close if its policies were enforced", c.WouldClose, c.WouldCloseTotal)
	printFlows(w, "would open if the policy were chosen", c.WouldOpen, c.WouldOpenTotal)
	for _, one := range c.WouldOpenNotKnown {
		fmt.Fprintf(w, "not known: pipeline %s: choices for single documents may open more, since these ask for the "+
			"policies of other documents: %s\n", printable(one.Pipeline), printable(strings.Join(one.Policies, ", ")))
	}
	printModes(w, c)
	if c.OpenedTotal+c.ClosedTotal == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s users affected%s\n%s documents affected%s\n", grouped(c.UsersTotal),
		examples(c.Users, c.UsersTotal),
		grouped(c.DocumentsTotal), examples(c.Documents, c.DocumentsTotal))
}

func printFlows(w io.Writer, what string, list []api.FlowChange, total uint64) {
	fmt.Fprintf(w, "\n%s: %s\n", what, grouped(total))
	if len(list) == 0 {
		return
	}
	rows := [][]string{{"TASK", "ACCESS", "CONDUITS", "POLICY", "FLOWS", "INSTANCES", "DOCUMENTS", "EXAMPLE"}}
	for _, f := range list {
		rows = append(rows, []string{f.Pipeline + "/" + f.Task, f.Access, f.Conduits, either(f.Policy, "-"),
			grouped(f.Flows), grouped(f.Instances),
			grouped(f.Documents), f.Instance + " " + f.Conduit})
	}
	table(w, rows)
}

// printModes prints the changes of modes, if there are any. Flows are what policies allow, in every mode of the
// pipeline: this says whether anything is denied.
func printModes(w io.Writer, c api.Comparison) {
	if c.ModesTotal == 0 {
		return
	}
	fmt.Fprintf(w, "\nmodes that change: %s\n", grouped(c.ModesTotal))
	rows := [][]string{{"KIND", "NAME", "FROM", "TO", "EFFECT"}}
	for _, m := range c.Modes {
		rows = append(rows, []string{m.Kind, m.Name, either(m.From, "(new)"), m.To, m.Effect})
	}
	table(w, rows)
}

// examples returns some of many names: ": alice, bob, …".
func examples(names []string, total uint64) string {
	if len(names) == 0 {
		return ""
	}
	text := ": " + printable(strings.Join(names, ", "))
	if uint64(len(names)) < total {
		text += ", …"
	}
	return text
}
