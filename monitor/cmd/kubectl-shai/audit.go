// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/audit/records"
	"shai.dev/monitor/internal/reading"
	"shai.dev/monitor/internal/shape"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	asked   reading.AuditQuestion
	kinds   []string
	since   string
	denials bool
	limit   int
}

func (p *program) auditCommand() *cobra.Command {
	var flags auditFlags
	var r reader
	command := &cobra.Command{
		Use:   "audit PIPELINE",
		Short: "Show the audit log of a member of a pipeline's pool",
		Long: `Show audit records of a member, oldest first, and what the monitor's last verification of the
chain of records has found. Each member has a log of its own, which is about the pipelines of
one namespace. The exit code is 1 if the chain is broken.

It needs the right to create MemberReadings. Each page that is read is recorded in the log,
with your name. What the member answers is encrypted for this command.`,
		Example: `  kubectl shai audit minimal --denials --since 1h
  kubectl shai audit minimal --member minimal-1 --kind reading --output json`,
		Args:              takes("PIPELINE"),
		PreRunE:           func(*cobra.Command, []string) error { return flags.resolve(time.Now()) },
		ValidArgsFunction: p.completePipelines,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			r.kubectl = p.kubectl
			shown, err := readAudit(ctx, &r, question{Pipeline: arguments[0], Audit: &flags.asked}, flags.limit)
			if err != nil {
				return err
			}
			return p.showAudit(shown)
		}),
	}
	r.flags(command)
	f := command.Flags()
	f.BoolVar(&flags.denials, "denials", false, "only denials")
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds of records: "+strings.Join(records.KindNames(), ", "))
	f.StringVar(&flags.since, "since", "", "not older than a duration (10m) or an RFC 3339 time")
	f.StringVar(&flags.asked.Principal, "principal", "", "user")
	f.StringVar(&flags.asked.Conduit, "conduit", "", "conduit, or everything beneath a path that ends in /")
	f.StringVar(&flags.asked.Task, "task", "", "task")
	f.IntVar(&flags.limit, "limit", 100, "number of records, the latest; 0 means all")
	command.MarkFlagsMutuallyExclusive("denials", "kind")
	_ = command.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(records.KindNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

// resolve turns the flags into a question.
func (f *auditFlags) resolve(now time.Time) error {
	kinds, err := records.ParseKinds(f.kinds)
	if err != nil {
		return fmt.Errorf("--kind %w", err)
	}
	f.asked.Kinds = kinds
	if f.denials {
		f.asked.Kinds = []records.Kind{records.Denial}
	}
	if f.limit < 0 {
		return fmt.Errorf("--limit %d: expected 0 or more", f.limit)
	}
	if f.since == "" {
		return nil
	}
	if age, err := time.ParseDuration(f.since); err == nil {
		f.asked.Since = now.Add(-age).UTC()
		return nil
	}
	instant, err := time.Parse(time.RFC3339, f.since)
	if err != nil {
		return fmt.Errorf("--since %q: expected a duration such as 10m, or a time such as 2026-03-01T12:00:00Z", f.since)
	}
	f.asked.Since = instant
	return nil
}

// shownAudit is what audit shows.
type shownAudit struct {
	Member    string            `json:"member"`
	Records   []json.RawMessage `json:"records"`
	Shortened bool              `json:"shortened"` // there may be more before them
	Verified  time.Time         `json:"verified,omitzero"`
	Fault     string            `json:"fault,omitempty"`
}

// readAudit reads pages from the end of a log until it has as many records as are wanted.
func readAudit(ctx context.Context, r *reader, asked question, limit int) (shownAudit, error) {
	var shown shownAudit
	for {
		asked.Audit.Limit = reading.MaxRecords
		if left := limit - len(shown.Records); limit > 0 {
			asked.Audit.Limit = min(left, reading.MaxRecords)
		}
		answer, err := r.read(ctx, asked)
		if err != nil {
			return shown, err
		}
		page := answer.Audit
		if page == nil {
			return shown, errors.New("the member has answered another question")
		}
		if shown.Member == "" {
			shown.Member, shown.Verified, shown.Fault = r.member, page.Verified, page.Fault
		}
		shown.Records = append(page.Records, shown.Records...)
		if page.Before == 0 || limit > 0 && len(shown.Records) >= limit {
			shown.Shortened = page.Before != 0
			return shown, nil
		}
		asked.Audit.Before = page.Before
	}
}

func (p *program) showAudit(shown shownAudit) error {
	var text strings.Builder
	for _, one := range shown.Records {
		var record records.Record
		if err := json.Unmarshal(one, &record); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		fmt.Fprintln(&text, shape.Visible(record.Line()))
	}
	if err := p.print(shown, text.String()); err != nil {
		return err
	}
	if p.output == "text" {
		fmt.Fprintln(p.stderr, shown.chain())
	}
	if shown.Fault != "" {
		return errSaid
	}
	return nil
}

// chain says what the monitor knows about the chain of the whole log.
func (s shownAudit) chain() string {
	of := "the audit log of member " + shape.Visible(s.Member)
	switch {
	case s.Fault != "":
		return of + " is damaged or was altered: " + shape.Visible(s.Fault)
	case s.Verified.IsZero():
		return of + " was not verified since its monitor started; try again in a minute"
	}
	return of + " was verified at " + s.Verified.UTC().Format(time.RFC3339) + ": its chain is complete"
}
