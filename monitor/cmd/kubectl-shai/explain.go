// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) explainCommand() *cobra.Command {
	var asked accessQuestion
	var r reader
	command := &cobra.Command{
		Use:   "explain PIPELINE --conduit PATH",
		Short: "Explain why an access is allowed or denied",
		Long: `Have a member decide one access in its current state, and explain the decision: in one
sentence, and by the derivation, which shows the clause that holds or fails and the facts that
it depends on. Nothing is changed. The question is recorded, with your name.

It needs the right to create MemberReadings. What the member answers is encrypted for this
command. What you ask is not.`,
		Example: `  kubectl shai explain syse --principal bob --region de --conduit /corpus/friends/alice/1.txt
  kubectl shai explain syse --task search --conduit /index/0/segments_1 --access write`,
		Args: takes("PIPELINE"),
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case asked.Access != "read" && asked.Access != "write":
				return fmt.Errorf("--access %q is not known; expected read or write", asked.Access)
			case asked.Conduit == "":
				return errors.New("give --conduit, what is accessed")
			case asked.Principal == "" && asked.Task == "":
				return errors.New("give --principal, the user who wants to access it, or --task for a task without users")
			}
			return nil
		},
		ValidArgsFunction: p.completePipelines,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			r.kubectl = p.kubectl
			answer, err := r.read(ctx, question{Pipeline: arguments[0], Explain: &asked})
			if err != nil {
				return err
			}
			if answer.Explanation == nil {
				return errors.New("the member has answered another question")
			}
			var text strings.Builder
			answer.Explanation.Print(&text)
			return p.print(answer.Explanation, text.String())
		}),
	}
	r.flags(command)
	flags := command.Flags()
	flags.StringVar(&asked.Principal, "principal", "", "user on whose behalf the access is made")
	flags.StringVar(&asked.Region, "region", "", "region that the user connects from")
	flags.StringVar(&asked.Conduit, "conduit", "", "conduit that is accessed, by its name in the pipeline")
	flags.StringVar(&asked.Access, "access", "read", "read or write")
	flags.StringVar(&asked.Task, "task", "", "task that makes the access; default: the task that has a user")
	_ = command.RegisterFlagCompletionFunc("access",
		cobra.FixedCompletions([]string{"read", "write"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}
