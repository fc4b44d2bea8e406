// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/plainfile"
)

// secret is the mode of files from which facts can be read, or that grant access.
const secret fs.FileMode = 0o600

func (p *program) analyzeExportCommand() *cobra.Command {
	var pipeline string
	command := &cobra.Command{
		Use:   "export FILE",
		Short: "Write what other machines need to run the analysis in shards",
		Long: `Write the work of an analysis into a file: the pipeline's plan, and a copy of the
catalog. It has all facts and the names of all documents, so keep it as secret as they are.

Run shai analyze shard on it, on as many machines as there are shards, and then
shai analyze import with all their results. The import is refused if facts or the
bundle have changed since the export.`,
		Example: `  shai analyze export work
  shai analyze shard work 1/2 first     # on one machine
  shai analyze shard work 2/2 second    # on another one
  shai analyze import first second`,
		Args: cobra.ExactArgs(1),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.exportAnalysis(ctx, pipeline, arguments[0])
		}),
	}
	command.Flags().StringVar(&pipeline, "pipeline", "", "pipeline to analyse; optional if there is only one")
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	return command
}

func (p *program) exportAnalysis(ctx context.Context, pipeline, path string) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	work, size, err := client.ExportAnalysis(ctx, pipeline)
	if err != nil {
		return err
	}
	defer work.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secret) // in nobody else's file
	if err != nil {
		return fmt.Errorf("write work: %w", err)
	}
	written, err := io.Copy(file, work)
	if err == nil && written != size {
		err = fmt.Errorf("%d of %d bytes arrived", written, size)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write work %s: %w", path, err), os.Remove(path))
	}
	return p.print(exported{path, size}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s bytes\n", path, grouped(uint64(written))) //nolint:gosec // not negative
	})
}

// exported is the output of shai analyze export, and of a shard.
type exported struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (p *program) analyzeShardCommand() *cobra.Command {
	var megabytes int64
	command := &cobra.Command{
		Use:   "shard WORK NUMBER/OF FILE",
		Short: "Run one shard of an exported analysis",
		Long: `Analyse the instances of one shard of exported work, and write the result into a file.
It talks to no monitor. Meanwhile it has a copy of the catalog in the directory that
TMPDIR names.

Who can change the result can grant access, so let nobody but its machine write it.`,
		Example: `  shai analyze shard work 1/2 first`,
		Args:    cobra.ExactArgs(3),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			shard, err := analysis.ParseShard(arguments[1])
			if err != nil {
				return err
			}
			result, err := monitor.RunShard(ctx, arguments[0], megabytes<<20, shard, p.progress())
			p.endProgress()
			if err != nil {
				return err
			}
			if err := replaceFile(arguments[2], result, secret); err != nil {
				return err
			}
			return p.print(exported{arguments[2], int64(len(result))}, func(w io.Writer) {
				fmt.Fprintf(w, "%s: shard %s, %s bytes\n", arguments[2], shard, grouped(uint64(len(result))))
			})
		}),
	}
	limitOfWork(command, &megabytes, "analysed")
	return command
}

// limitOfWork adds the flag that limits the work of an analysis: it is as large as the catalog, which only its owner
// knows.
func limitOfWork(command *cobra.Command, megabytes *int64, what string) {
	const usual = 8192
	command.Flags().Int64Var(megabytes, "limit-megabytes", usual, "the largest work that is "+what+", in MiB")
}

func (p *program) analyzeImportCommand() *cobra.Command {
	var pipeline string
	command := &cobra.Command{
		Use:   "import FILE...",
		Short: "Put the results of all shards of an analysis in force",
		Long: `Join the results of all shards, in any order, and put them in force, as shai analyze
does with a run of its own. The bytes are those of an undivided run. The results of other
work, or of earlier facts, are refused. What the results grant is believed.`,
		Example: `  shai analyze import first second`,
		Args:    cobra.MinimumNArgs(1),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.importAnalysis(ctx, pipeline, arguments)
		}),
	}
	command.Flags().StringVar(&pipeline, "pipeline", "", "pipeline that was analysed; optional if there is only one")
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	return command
}

// largestShard is what the monitor accepts of an analysis.
const largestShard = 1 << 30

func (p *program) importAnalysis(ctx context.Context, pipeline string, paths []string) error {
	shards := make([][]byte, len(paths))
	for i, path := range paths {
		var err error
		if shards[i], err = plainfile.Read(path, largestShard); err != nil {
			return fmt.Errorf("read shard: %w", err)
		}
	}
	result, basis, err := analysis.Merge(shards)
	if err != nil {
		return fmt.Errorf("join shards: %w", err)
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	report, err := client.ImportAnalysis(ctx, pipeline, basis, result)
	if err != nil {
		return err
	}
	return p.print(report, func(w io.Writer) { printAnalysis(w, report, true) })
}
