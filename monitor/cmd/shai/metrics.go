// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/metrics"
)

func (p *program) metricsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "List the monitor's metrics; needs no monitor",
		Long: `List the metrics that a monitor exports at GET /metrics: their names, types, labels, units
and meanings. Metrics of the Go runtime (go_…) and of the process (process_…) come in
addition.`,
		Example: "  shai metrics\n  shai metrics --output json",
		Args:    cobra.NoArgs,
		RunE: p.does(func(context.Context, []string) error {
			table := metrics.Table()
			return p.print(table, func(w io.Writer) { printMetrics(w, table) })
		}),
	}
}

func printMetrics(w io.Writer, table []metrics.Metric) {
	for i, metric := range table {
		if i > 0 {
			fmt.Fprintln(w)
		}
		kind := metric.Type
		if metric.Unit != "" {
			kind += ", " + metric.Unit
		}
		fmt.Fprintf(w, "%s (%s)\n  %s\n", metric.Name, kind, metric.Meaning)
		for _, label := range metric.Labels {
			fmt.Fprintf(w, "    %s: %s\n", label.Name, label.Meaning)
		}
	}
}
