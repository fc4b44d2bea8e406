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
	var at string
	command := &cobra.Command{
		Use:   "explain --principal NAME --conduit PATH",
		Short: "Explain why an access is allowed or denied",
		Long: `Decide one access in the current state and explain the decision: in one sentence, and
by the derivation, which shows the clause that holds or fails and the facts that it
depends on. The taint is the declared one, or that of the task's program if one runs: it
may have raised its taint, or have read more. If only one fact is missing, the command that changes it is shown. Nothing
is changed or recorded.

With --browser the same is shown on a page for a browser, on this machine and until Ctrl-C:
beside the derivation, who else may access the conduit, what was decided about it, and what is
refused now. The page needs no question; the flags ask its first one.`,
		Example: `  shai explain --principal bob --region de --conduit /corpus/friends/alice/1.txt
  shai explain --browser
  shai explain --task search --conduit /index/0/segments_1 --access write`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if question.Access != "read" && question.Access != "write" {
				return fmt.Errorf("--access %q is not known; expected read or write", question.Access)
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
	_ = command.RegisterFlagCompletionFunc("pipeline", p.completePipelines)
	_ = command.RegisterFlagCompletionFunc("access",
		cobra.FixedCompletions([]string{"read", "write"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}
