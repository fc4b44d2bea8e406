// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/shape"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command failed, or has found that something is wrong
	exitUsage   = 2 // the command line was wrong
)

// program is one run of the command line, with its output.
type program struct {
	stdout, stderr io.Writer

	kubectl kubectl
	output  string
	started bool // the command line was valid; later errors are no usage errors
}

// errSaid ends a command that has already printed what is wrong.
var errSaid = errors.New("failed")

// run executes a command line and returns the exit code.
func (p *program) run(ctx context.Context, arguments []string) int {
	root := p.root()
	root.SetArgs(arguments)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSaid):
		return exitFailure
	case !p.started:
		fmt.Fprintf(p.stderr, "kubectl shai: %v; see %s --help\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "kubectl shai: %s\n", shape.Lines(err.Error()))
	return exitFailure
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-shai",
		Short: "Rollouts, runs, output and health of Shai on Kubernetes",
		Long: `kubectl shai shows and steers what the Shai operator does: rollouts of policies, runs of
tasks, members of pools. It uses kubectl, and has the rights of your kubeconfig.

What tasks print, explanations and audit logs are on the members, for administrators: logs,
explain and audit need the role shai-member-reader in the namespace, or shai-pool-admin, and
the member records each reading.`,
		Example: `  kubectl shai rollout status syse
  kubectl shai rollout pause syse -n search
  kubectl shai logs minimal/count
  kubectl shai top
  kubectl shai doctor`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       edition.Version(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl shai"},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVarP(&p.kubectl.namespace, "namespace", "n", "", "namespace; default: that of the context")
	flags.StringVar(&p.kubectl.context, "context", "", "context of the kubeconfig; default: the present one")
	flags.StringVar(&p.kubectl.kubeconfig, "kubeconfig", "", "kubeconfig file; default: as for kubectl")
	flags.StringVar(&p.kubectl.program, "kubectl", "kubectl", "the kubectl to use")
	flags.StringVarP(&p.output, "output", "o", "text", "how to print: text or json")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(p.rolloutCommand(), p.topCommand(), p.doctorCommand(), p.logsCommand(),
		p.explainCommand(), p.auditCommand(), p.versionCommand())
	return root
}

// action is the part of a command that runs after its command line was checked.
type action func(ctx context.Context, arguments []string) error

// does returns the function that runs an action. Errors before it are usage errors.
func (p *program) does(do action) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		if p.output != "text" && p.output != "json" {
			return fmt.Errorf("--output %q is not known; expected text or json", p.output)
		}
		p.started = true
		return do(command.Context(), arguments)
	}
}

// takes checks that a command has one argument; the error names it.
func takes(name string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 1 {
			return nil
		}
		return fmt.Errorf("%s takes one %s, got %d arguments", command.CommandPath(), name, len(arguments))
	}
}

// print writes a result: as JSON for programs, or the text for people. The text has what has no shape
// escaped: objects, and what members say in them, are others' texts.
func (p *program) print(value any, text string) error {
	if p.output == "json" {
		shown, err := shape.JSON(value)
		if err != nil {
			return err
		}
		_, err = io.WriteString(p.stdout, shown)
		return err
	}
	_, err := io.WriteString(p.stdout, shape.Lines(text))
	return err
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this plugin", Example: "  kubectl shai version", Args: cobra.NoArgs,
		RunE: p.does(func(context.Context, []string) error {
			about := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
			}{edition.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return p.print(about, fmt.Sprintf("kubectl-shai %s, %s, %s\n", about.Version, about.Go, about.System))
		}),
	}
}
