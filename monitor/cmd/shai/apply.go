// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) applyCommand() *cobra.Command {
	var files []string
	var request api.ApplyRequest
	command := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Give the monitor policies, facts, tasks and pipelines",
		Long: `Give the monitor policies, facts, tasks and pipelines.

All manifests are checked before anything changes. Objects replace those of the same
name that the monitor has. --prune also removes objects that the files do not name.`,
		Example: `  shai apply -f crds/examples/syse
  shai apply -f policies.yaml -f pipeline.yaml --dry-run
  generate | shai apply -f -`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			sources, err := manifest.Read(p.stdin, files...)
			if err != nil {
				return err
			}
			request.Sources = sources
			return p.apply(ctx, request)
		}),
	}
	fileFlag(command, &files)
	command.Flags().BoolVar(&request.DryRun, "dry-run", false, "check, say what would change, and change nothing")
	command.Flags().BoolVar(&request.Prune, "prune", false, "remove objects that the files do not name")
	command.Flags().StringVar(&request.Label, "label", "",
		"name of the bundle, such as a release; shai status shows it")
	return command
}

// fileFlag adds the flag by which commands get manifests.
func fileFlag(command *cobra.Command, files *[]string) {
	command.Flags().StringArrayVarP(files, "filename", "f", nil,
		"file or directory with manifests, - for standard input; may be repeated")
	_ = command.MarkFlagRequired("filename")
}

func (p *program) apply(ctx context.Context, request api.ApplyRequest) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	result, err := client.Apply(ctx, request)
	if err != nil {
		return err
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(p.stderr, "warning: %s\n", printable(warning))
	}
	return p.print(result, func(w io.Writer) {
		suffix := ""
		if result.DryRun {
			suffix = " (dry run)"
		}
		for _, o := range result.Objects {
			fmt.Fprintf(w, "%s/%s %s%s\n", strings.ToLower(o.Kind), o.Name, o.Change, suffix)
		}
		fmt.Fprintf(w, "bundle %d (%.12s)%s\n", result.Version, result.Hash, suffix)
	})
}
