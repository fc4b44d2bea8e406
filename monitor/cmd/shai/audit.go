// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/audit/records"
)

// auditFlags are the command-line flags of shai audit.
type auditFlags struct {
	kinds           []string
	since           string
	allowed, denied bool
	query           audit.Query
}

func (p *program) auditCommand() *cobra.Command {
	var flags auditFlags
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show and verify what the monitor decided",
		Long: `Show audit records, oldest first: slow-path decisions, denials, session bindings, and
changes of bundles, facts and modes. Records form a chain that is sealed with the
monitor's key; "shai audit verify" finds the first one that is altered or missing.`,
		Example: `  shai audit --kind denial --principal bob
  shai audit --conduit /corpus/private/ --since 10m
  shai audit --follow --output json`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return flags.resolve(time.Now()) },
		RunE:    p.does(func(ctx context.Context, _ []string) error { return p.audit(ctx, flags.query) }),
	}
	f := command.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds of records: "+strings.Join(records.KindNames(), ", "))
	f.StringVar(&flags.query.Principal, "principal", "", "user")
	f.StringVar(&flags.query.Conduit, "conduit", "", "conduit, or everything beneath a path that ends in /")
	f.StringVar(&flags.query.Task, "task", "", "task")
	f.StringVar(&flags.since, "since", "", "not older than a duration (10m) or an RFC 3339 time")
	f.BoolVar(&flags.allowed, "allowed", false, "only accesses that were allowed")
	f.BoolVar(&flags.denied, "denied", false, "only accesses that were denied")
	f.IntVar(&flags.query.Limit, "limit", 100, "number of records, the latest; 0 means all")
	f.BoolVar(&flags.query.Follow, "follow", false, "print new records too, until interrupted")
	command.MarkFlagsMutuallyExclusive("allowed", "denied")
	_ = command.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(records.KindNames(), cobra.ShellCompDirectiveNoFileComp))
	command.AddCommand(p.auditVerifyCommand())
	return command
}

// resolve turns the flags into a query.
func (f *auditFlags) resolve(now time.Time) error {
	kinds, err := records.ParseKinds(f.kinds)
	if err != nil {
		return fmt.Errorf("--kind %w", err)
	}
	f.query.Kinds = kinds
	if f.allowed || f.denied {
		f.query.Allowed = &f.allowed
	}
	if f.query.Limit < 0 {
		return fmt.Errorf("--limit %d: expected 0 or more", f.query.Limit)
	}
	if f.since == "" {
		return nil
	}
	if age, err := time.ParseDuration(f.since); err == nil {
		f.query.Since = now.Add(-age)
		return nil
	}
	instant, err := time.Parse(time.RFC3339, f.since)
	if err != nil {
		return fmt.Errorf("--since %q: expected a duration such as 10m, or a time such as 2026-03-01T12:00:00Z",
			f.since)
	}
	f.query.Since = instant
	return nil
}

// audit prints records: as JSON, one list; with --follow, one object a line.
func (p *program) audit(ctx context.Context, query audit.Query) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	switch {
	case p.output == "text":
		return client.Query(ctx, query, func(r audit.Record) error { return printRecord(p.stdout, r) })
	case query.Follow && p.output == "json":
		encoder := json.NewEncoder(p.stdout)
		return client.Query(ctx, query, func(r audit.Record) error { return encoder.Encode(r) })
	case query.Follow:
		return client.Query(ctx, query, func(r audit.Record) error {
			io.WriteString(p.stdout, "---\n")
			return printYAML(p.stdout, r)
		})
	}
	records := []audit.Record{}
	err = client.Query(ctx, query, func(r audit.Record) error { records = append(records, r); return nil })
	if err != nil {
		return err
	}
	return p.print(records, nil)
}

// printRecord writes a record on one line.
func printRecord(w io.Writer, r audit.Record) error {
	_, err := fmt.Fprintln(w, printable(r.Line()))
	return err
}

func (p *program) auditVerifyCommand() *cobra.Command {
	var key string
	command := &cobra.Command{
		Use:   "verify [DIRECTORY]",
		Short: "Check the chain of records; fails at the first altered or missing one",
		Long: `Check that no audit record was altered or removed. Without a directory, the monitor
checks its own log. With a directory, this command checks the log in it, without a monitor.
It needs the key that the monitor has made beside the log: a copy of STATE/audit.key.
Whoever has the key can also make records that pass this check.`,
		Example: `  shai audit verify
  shai audit verify /var/lib/shai/audit
  shai audit verify copy/audit --audit-key copy/audit.key`,
		Args: cobra.MaximumNArgs(1),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			verification, err := p.verification(ctx, arguments, key)
			if err != nil {
				return err
			}
			err = p.print(verification, func(w io.Writer) { printVerification(w, verification) })
			if err == nil && verification.Fault != "" {
				return errSaid
			}
			return err
		}),
	}
	command.Flags().StringVar(&key, "audit-key", "", "file with the log's key; default: DIRECTORY.key")
	_ = command.MarkFlagFilename("audit-key")
	return command
}

func printVerification(w io.Writer, v audit.Verification) {
	if v.Fault != "" {
		fmt.Fprintf(w, "correct records: %s, then: %s\n", grouped(v.Records), printable(v.Fault))
		return
	}
	fmt.Fprintf(w, "%s in %s: the chain is complete\n", counted(v.Records, "record"), counted(v.Files, "file"))
	if v.First > 1 {
		fmt.Fprintf(w, "records 1 to %d were removed by the monitor, to keep the log within its size\n", v.First-1)
	}
	if v.Unkeyed > 0 {
		fmt.Fprintf(w, "%s of them are older than the log's key: somebody may have replaced them before it was made\n",
			grouped(v.Unkeyed))
	}
}

func (p *program) verification(ctx context.Context, arguments []string, key string) (audit.Verification, error) {
	if len(arguments) == 1 {
		return audit.Verify(ctx, arguments[0], key)
	}
	if key != "" {
		return audit.Verification{}, errors.New("--audit-key is for the log in a directory; the monitor has its own key")
	}
	client, err := p.client()
	if err != nil {
		return audit.Verification{}, err
	}
	return client.Verify(ctx)
}
