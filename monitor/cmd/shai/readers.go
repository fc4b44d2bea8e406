// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) readersCommand() *cobra.Command {
	var request api.ReadersRequest
	command := &cobra.Command{
		Use:   "readers --conduit PATH",
		Short: "List who may read a document",
		Long: `List the users, and the tasks without users, that may read a conduit by the last
offline analysis. Users that no expectation of the pipeline names are not in it, and may
have access, too, and so may others if it depends on an address or on how long ago something was:
"shai explain" decides on one of them now.`,
		Example: `  shai readers --conduit /corpus/friends/alice/1.txt
  shai readers --conduit /corpus/public/1.txt --limit 1000 --output json`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkReaders(request) },
		RunE: p.does(func(ctx context.Context, _ []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			readers, err := client.Readers(ctx, request)
			if err != nil {
				return err
			}
			return p.print(readers, func(w io.Writer) { printReaders(w, readers) })
		}),
	}
	flags := command.Flags()
	flags.StringVar(&request.Conduit, "conduit", "", "conduit, by its name in the pipeline: /corpus/public/17.txt")
	flags.StringVar(&request.Access, "access", "read", "read or write")
	flags.StringVar(&request.Pipeline, "pipeline", "", "pipeline; optional if there is only one")
	flags.IntVar(&request.Limit, "limit", 100, "number of users to list")
	_ = command.MarkFlagRequired("conduit")
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	return command
}

func checkReaders(request api.ReadersRequest) error {
	if request.Limit < 1 || request.Limit > api.MaxReaders {
		return fmt.Errorf("--limit %d: expected a number from 1 to %d", request.Limit, api.MaxReaders)
	}
	return checkAccess(request.Access)
}

func printReaders(w io.Writer, r api.Readers) {
	who := "users and tasks"
	if r.Total == 1 {
		who = "user or task"
	}
	fmt.Fprintf(w, "%s of %s (%s): %s %s, by the analysis of %s\n", r.Access, printable(r.Conduit), printable(r.Policy),
		grouped(r.Total), who, r.Analyzed.Format(time.RFC3339))
	if !r.Current {
		fmt.Fprintln(w, "facts or the bundle have changed since: shai analyze")
	}
	if r.Unlisted != "" {
		fmt.Fprintln(w, printable(r.Unlisted))
	}
	if len(r.Readers) == 0 {
		return
	}
	rows := [][]string{{"USER", "TASK", "REGIONS"}}
	for _, reader := range r.Readers {
		rows = append(rows, []string{either(reader.Principal, "-"), reader.Task,
			either(strings.Join(reader.Regions, " "), "-")})
	}
	fmt.Fprintln(w)
	table(w, rows)
	if more := r.Total - len(r.Readers); more > 0 {
		fmt.Fprintf(w, "… and %s more\n", grouped(more))
	}
}
