// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/distribution"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/monitor/api"
)

// jobIndex is the variable in which a Kubernetes Job says to a pod which one it is, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

const identityHelp = "directory with " + distribution.Authority + ", and this side's key and certificate of it in " +
	distribution.Own

func (p *program) analyzeDistributeCommand() *cobra.Command {
	var wanted distributionFlags
	command := &cobra.Command{
		Use:   "distribute",
		Short: "Divide the analysis among workers that connect, and put the result in force",
		Long: `Export the work of an analysis, give it to the workers that connect, and put their joined
results in force: shai analyze export, shard and import in one. Workers are shai analyze worker,
one for each shard, on any machines.

Both sides need a certificate of one authority, by which they know each other. Make an authority
for this analysis alone: whoever has a certificate of it can read the work, which has all facts
and the names of all documents, and can grant access by a result. Of a shard that is computed
twice, both results have to be equal.

With --output json each event is a line: {"listening": ADDRESS} when workers may connect,
{"done": N, "of": SHARDS}, and {"analysis": …} or {"problem": …} at the end.`,
		Example: `  shai analyze distribute --shards 2 --listen 192.0.2.1:4567 --identity coordinator`,
		Args:    cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			return p.distributed(p.distribute(ctx, wanted))
		}),
	}
	flags := command.Flags()
	flags.StringVar(&wanted.pipeline, "pipeline", "", "pipeline to analyse; optional if there is only one")
	flags.IntVar(&wanted.shards, "shards", 0, "into how many shards it is divided")
	flags.StringVar(&wanted.listen, "listen", "", "address for workers; with port 0 a free one, which is printed")
	flags.StringVar(&wanted.identity, "identity", "", identityHelp)
	limitOfWork(command, &wanted.megabytes, "distributed")
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	for _, required := range []string{"shards", "listen", "identity"} {
		_ = command.MarkFlagRequired(required)
	}
	return command
}

type distributionFlags struct {
	pipeline, listen, identity string
	shards                     int
	megabytes                  int64
}

// event is a line of the output of shai analyze distribute.
type event struct {
	Listening string        `json:"listening,omitempty"`
	Done      int           `json:"done,omitempty"`
	Of        int           `json:"of,omitempty"`
	Analysis  *api.Analysis `json:"analysis,omitempty"`
	Problem   *api.Problem  `json:"problem,omitempty"`
}

// tell writes an event; what it says to people is text.
func (p *program) tell(one event, text string) error {
	if p.output == "json" {
		return json.NewEncoder(p.stdout).Encode(one)
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}

// distributed tells programs what is wrong with the monitor's answer, or that there is none. Other
// errors are of this machine and its workers.
func (p *program) distributed(err error) error {
	var problem *api.Problem
	if p.output == "json" && errors.As(err, &problem) {
		return errors.Join(err, p.tell(event{Problem: problem}, ""))
	}
	return err
}

func (p *program) distribute(ctx context.Context, wanted distributionFlags) error {
	if _, err := analysis.ParseShard(fmt.Sprintf("1/%d", wanted.shards)); err != nil {
		return err
	}
	client, err := p.client()
	if err != nil {
		return err
	}
	work, err := exportedWork(ctx, client, wanted.pipeline, wanted.megabytes)
	if err != nil {
		return err
	}
	defer work.Close()
	results, err := p.fromWorkers(ctx, wanted, work)
	if err != nil {
		return err
	}
	merged, basis, err := analysis.Merge(results)
	if err != nil {
		return fmt.Errorf("join shards: %w", err)
	}
	report, err := client.ImportAnalysis(ctx, wanted.pipeline, basis, merged)
	if err != nil {
		return err
	}
	if p.output == "json" {
		return p.tell(event{Analysis: &report}, "")
	}
	return p.print(report, func(w io.Writer) { printAnalysis(w, report, true) })
}

// fromWorkers returns the results of all shards.
func (p *program) fromWorkers(ctx context.Context, wanted distributionFlags, work *os.File) ([][]byte, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", wanted.listen)
	if err != nil {
		return nil, fmt.Errorf("listen for workers: %w", err)
	}
	address := listener.Addr().String()
	if err := p.tell(event{Listening: address}, "waiting for workers at "+address+"\n"); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return distribution.Serve(ctx, listener, wanted.identity, distribution.Work{File: work, Shards: wanted.shards},
		func(done int) { // who reads no progress still gets the result
			_ = p.tell(event{Done: done, Of: wanted.shards},
				fmt.Sprintf("%d of %s\n", done, counted(wanted.shards, "shard")))
		})
}

// exportedWork returns the work, of so many MiB at most, in a file without a name.
func exportedWork(ctx context.Context, client *api.Client, pipeline string, most int64) (*os.File, error) {
	work, size, err := client.ExportAnalysis(ctx, pipeline)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	if size > most<<20 {
		return nil, api.Invalid("distribute an analysis", "analyse on the monitor's machine, or raise the limit",
			"its work has %d MiB, and %d are the limit", size>>20, most)
	}
	file, err := os.CreateTemp("", "shai-work-")
	if err != nil {
		return nil, fmt.Errorf("write work: %w", err)
	}
	err = os.Remove(file.Name())
	written, other := io.Copy(file, io.LimitReader(work, most<<20))
	if errors.Is(other, io.ErrUnexpectedEOF) || other == nil && written != size {
		other = &api.Problem{Title: "distribute an analysis", Status: http.StatusServiceUnavailable,
			Detail: fmt.Sprintf("%d of %d bytes of the work arrived", written, size), Remedy: "see the monitor's log"}
	}
	if err = errors.Join(err, other); err != nil {
		return nil, errors.Join(fmt.Errorf("write work: %w", err), file.Close())
	}
	return file, nil
}

func (p *program) analyzeWorkerCommand() *cobra.Command {
	var connect, identity string
	var of int
	var megabytes int64
	command := &cobra.Command{
		Use:   "worker [NUMBER]",
		Short: "Compute one shard for shai analyze distribute",
		Long: `Fetch the work from shai analyze distribute, analyse the instances of one shard, and send the
result back. The number of the shard counts from 1; without it, it is one more than the variable
` + jobIndex + ` says, which an indexed Job of Kubernetes sets. It talks to no monitor. The work, and
a copy of the catalog, are in the directory that TMPDIR names meanwhile.`,
		Example: `  shai analyze worker 1 --of 2 --connect 192.0.2.1:4567 --identity worker`,
		Args:    cobra.MaximumNArgs(1),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			shard, err := p.shard(arguments, of)
			if err != nil {
				return err
			}
			return p.work(ctx, shard, connect, identity, megabytes<<20)
		}),
	}
	command.Flags().IntVar(&of, "of", 0, "the number of all shards")
	command.Flags().StringVar(&connect, "connect", "", "address of shai analyze distribute")
	command.Flags().StringVar(&identity, "identity", "", identityHelp)
	limitOfWork(command, &megabytes, "fetched")
	for _, required := range []string{"of", "connect", "identity"} {
		_ = command.MarkFlagRequired(required)
	}
	return command
}

// shard returns which shard a worker computes.
func (p *program) shard(arguments []string, of int) (analysis.Shard, error) {
	if len(arguments) == 1 {
		return analysis.ParseShard(fmt.Sprintf("%s/%d", arguments[0], of))
	}
	index, err := strconv.Atoi(p.environment(jobIndex))
	if err != nil {
		return analysis.Shard{}, fmt.Errorf("give the number of the shard, or its index in %s: %w", jobIndex, err)
	}
	return analysis.ParseShard(fmt.Sprintf("%d/%d", index+1, of))
}

func (p *program) work(ctx context.Context, shard analysis.Shard, connect, identity string, most int64) (err error) {
	worker, err := distribution.NewWorker(connect, identity)
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "shai-work-")
	if err != nil {
		return fmt.Errorf("fetch the work: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	path, err := worker.Fetch(ctx, directory, most)
	if err != nil {
		return err
	}
	result, err := monitor.RunShard(ctx, path, most, shard, p.progress())
	p.endProgress()
	if err != nil {
		return err
	}
	if err := worker.Send(ctx, shard, result); err != nil {
		return err
	}
	return p.print(sent{shard.String(), len(result)}, func(w io.Writer) {
		fmt.Fprintf(w, "shard %s: %s bytes\n", shard, grouped(uint64(len(result))))
	})
}

// sent is the output of shai analyze worker.
type sent struct {
	Shard string `json:"shard"`
	Bytes int    `json:"bytes"`
}
