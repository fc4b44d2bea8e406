// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/sandbox"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine can enforce",
		Long: `Examine this machine and show what its kernel can enforce: full, partial or none. If it
is none, tasks of confined pipelines do not start, and the exit code is 1.`,
		Example: `  shai doctor
  shai doctor --output json`,
		Args: cobra.NoArgs,
		RunE: p.does(func(context.Context, []string) error {
			report := p.probe()
			err := p.print(report, func(w io.Writer) { printMachine(w, report) })
			if err == nil && report.Enforcement != "full" && report.Enforcement != "partial" {
				return errSaid
			}
			return err
		}),
	}
}

func printMachine(w io.Writer, report sandbox.Report) {
	fmt.Fprintf(w, "%s, %s: enforcement %s\n\n", report.System, either(report.Backend, "no backend"),
		report.Enforcement)
	rows := [][]string{{"", "FEATURE", "FOUND", "NEEDED", "ENFORCES"}}
	for _, feature := range report.Features {
		mark := "ok"
		if !feature.Present {
			mark = "MISSING"
		}
		rows = append(rows, []string{mark, feature.Name, feature.Found, feature.Needed, feature.Effect})
	}
	table(w, rows)
}
