// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

var modes = []string{"shai", "dynamic", "dynamic-lazy", "audit", "baseline"}

func (p *program) pipelineCommand() *cobra.Command {
	return group("pipeline", "List pipelines and switch their mode", p.pipelineModeCommand(), p.pipelineListCommand())
}

func (p *program) pipelineModeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mode PIPELINE MODE",
		Short: "Switch how a pipeline is enforced",
		Long: `Switch a pipeline's mode: shai (accesses that the analysis granted run natively),
dynamic (every access is decided when it happens, by what was read before),
dynamic-lazy (as dynamic, but reads are logged, and decided on at the next write),
audit (accesses are decided and recorded, but never denied) or baseline (nothing is
enforced).`,
		Example: "  shai pipeline mode syse dynamic",
		Args: func(command *cobra.Command, arguments []string) error {
			if err := takes("PIPELINE", "MODE")(command, arguments); err != nil {
				return err
			}
			if !slices.Contains(modes, arguments[1]) {
				return fmt.Errorf("mode %q is not known; expected %s", arguments[1], strings.Join(modes, ", "))
			}
			return nil
		},
		ValidArgsFunction: func(command *cobra.Command, arguments []string, typed string) ([]string,
			cobra.ShellCompDirective) {
			if len(arguments) == 1 {
				return modes, cobra.ShellCompDirectiveNoFileComp
			}
			return p.completePipelines(command, arguments, typed)
		},
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			status, err := client.SetMode(ctx, arguments[0], arguments[1])
			if err != nil {
				return err
			}
			return p.print(status, func(w io.Writer) {
				fmt.Fprintf(w, "pipeline %s: mode %s\n", status.Name,
					status.Mode)
			})
		}),
	}
}

func (p *program) pipelineListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List pipelines", Example: "  shai pipeline list", Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			pipelines, err := p.pipelines(ctx, nil)
			if err != nil {
				return err
			}
			return p.print(pipelines, func(w io.Writer) { printPipelines(w, pipelines) })
		}),
	}
}

func printPipelines(w io.Writer, pipelines []api.PipelineStatus) {
	rows := [][]string{{"PIPELINE", "MODE", "REVOCATION", "CONDUITS", "CLASSES", "TASKS", "SESSIONS"}}
	for _, pipeline := range pipelines {
		rows = append(rows, []string{pipeline.Name, pipeline.Mode, pipeline.Revocation, grouped(pipeline.Conduits),
			grouped(pipeline.Classes), strconv.Itoa(len(pipeline.Tasks)), strconv.Itoa(pipeline.SessionTotal)})
	}
	table(w, rows)
}

// completePipelines offers the names of pipelines to the shell. It offers none if the
// monitor does not answer.
func (p *program) completePipelines(command *cobra.Command, arguments []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	pipelines, err := p.pipelines(command.Context(), nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, pipeline := range pipelines {
		names = append(names, pipeline.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeTasks offers a pipeline, then its tasks.
func (p *program) completeTasks(command *cobra.Command, arguments []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	if len(arguments) != 1 {
		return p.completePipelines(command, arguments, typed)
	}
	pipelines, err := p.pipelines(command.Context(), arguments)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, task := range pipelines[0].Tasks {
		names = append(names, task.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
