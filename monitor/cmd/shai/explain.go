// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) explainCommand() *cobra.Command {
	var question api.Question
	var browser bool
	var at, instant string
	var manifests offlineFlags
	command := &cobra.Command{
		Use:   "explain --principal NAME --conduit PATH",
		Short: "Explain why an access is allowed or denied",
		Long: `Decide one access in the current state and explain the decision: in one sentence, and
by the derivation, which shows the clause that holds or fails and the facts that it
depends on. The taint is the declared one, or that of the task's program if one runs: it
may have raised its taint, or have read more. If only one fact is missing, the command that changes it is shown. Nothing
is changed or recorded.

With -f the access is decided as if these manifests were in force, without a monitor, and the
smallest change of the policy is shown with which it would be allowed.

With --browser the same is shown on a page for a browser, on this machine and until Ctrl-C:
beside the derivation, who else may access the conduit, what was decided about it, and what is
refused now. The page needs no question; the flags ask its first one.`,
		Example: `  shai explain --principal bob --region de --conduit /corpus/friends/alice/1.txt
  shai explain -f crds/examples/minimal --task count --conduit /inbox/bob/1.txt
  shai explain --browser
  shai explain --task search --conduit /index/0/segments_1 --access write`,
		Args: cobra.NoArgs,
		PreRunE: func(command *cobra.Command, _ []string) error {
			if err := checkAccess(question.Access); err != nil {
				return err
			}
			given, err := manifests.given(command)
			if err != nil {
				return err
			}
			if browser && given || instant != "" && !given {
				return errors.New("-f is without a monitor: it has no --browser, and --time needs it")
			}
			if browser {
				return nil
			}
			if question.Conduit == "" {
				return errors.New("give --conduit, what is accessed, or --browser to ask on a page")
			}
			if question.Principal == "" && question.Task == "" {
				return fmt.Errorf("give --principal, the user who wants to %s %s, or --task for a task without users",
					question.Access, question.Conduit)
			}
			return nil
		},
		RunE: p.does(func(ctx context.Context, _ []string) error {
			if browser {
				return p.browse(ctx, at, question)
			}
			if len(manifests.files) > 0 {
				now, err := instantOf(instant)
				if err != nil {
					return err
				}
				return p.explainOffline(ctx, manifests, question, now)
			}
			client, err := p.client()
			if err != nil {
				return err
			}
			explanation, err := client.Explain(ctx, question)
			if err != nil {
				return err
			}
			return p.print(explanation, func(w io.Writer) { explanation.Print(w) })
		}),
	}
	flags := command.Flags()
	flags.StringVar(&question.Principal, "principal", "", "user on whose behalf the access is made")
	flags.StringVar(&question.Region, "region", "", "region that the user connects from")
	flags.StringVar(&question.Conduit, "conduit", "",
		"conduit that is accessed, by its name in the pipeline: /corpus/public/17.txt")
	flags.StringVar(&question.Access, "access", "read", "read or write")
	flags.StringVar(&question.Task, "task", "", "task that makes the access; default: the task that has a user")
	flags.StringVar(&question.Pipeline, "pipeline", "", "pipeline; optional if there is only one")
	flags.BoolVar(&browser, "browser", false, "show it on a page in a browser")
	flags.StringVar(&at, "at", "127.0.0.1:0", "address for --browser, 127.0.0.1:PORT; port 0: any free one")
	flags.StringVar(&instant, "time", "", "with -f: an RFC 3339 time instead of now")
	manifests.add(command)
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	_ = command.RegisterFlagCompletionFunc("access",
		cobra.FixedCompletions([]string{"read", "write"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}
