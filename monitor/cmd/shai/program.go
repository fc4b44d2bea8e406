// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command was understood and did not succeed
	exitUsage   = 2 // the command was not understood
)

// defaultSocket is where a monitor listens when nothing else is said.
const defaultSocket = "/run/shai/monitor.sock"

// program is one run of the command line, with what it needs of its surroundings.
type program struct {
	stdin       io.Reader
	stdout      io.Writer
	stderr      io.Writer
	environment func(string) string
	probe       func() sandbox.Report
	monitor     func(context.Context, monitor.Options) error

	target  api.Target
	output  string
	started bool // the command line was understood; what fails now is no usage error
}

// run carries a command line out and returns the exit code.
func (p *program) run(ctx context.Context, arguments []string) int {
	root := p.root()
	root.SetArgs(arguments)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	command, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSaid):
		return exitFailure
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(p.stderr, "shai: interrupted")
		return exitFailure
	}
	if !p.started {
		fmt.Fprintf(p.stderr, "shai: %v; see %s --help\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "shai: %v\n", err)
	var problem *api.Problem
	if errors.As(err, &problem) {
		for _, one := range problem.Errors {
			fmt.Fprintf(p.stderr, "  %s\n", strings.ReplaceAll(one, "\n", "\n  "))
		}
	}
	return exitFailure
}

// errSaid ends a command that failed and has already said why on its output.
var errSaid = errors.New("failed")

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "shai",
		Short: "Data-use policies that no task can break",
		Long: `shai runs data pipelines so that every piece of data carries its own data-use policy,
and no task, however buggy, can let data flow where its policy forbids.

Start a monitor with "shai monitor", give it manifests with "shai apply", and ask it
with "shai status", "shai explain" and "shai audit".`,
		Example: `  shai doctor
  shai monitor --data /srv/data --state /var/lib/shai
  shai apply -f crds/examples/syse
  shai explain --principal bob --region de --conduit /corpus/friends/alice/1.txt`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	onlyCommands(root)
	p.flags(root)
	root.AddCommand(
		p.applyCommand(), p.compareCommand(), p.monitorCommand(), p.analyzeCommand(), p.explainCommand(),
		p.policyCommand(),
		p.auditCommand(), p.doctorCommand(), p.factsCommand(), p.pipelineCommand(), p.taskCommand(),
		p.statusCommand(), p.validateCommand(), p.keyValueCommand(), p.versionCommand(),
	)
	return root
}

// flags are those of every command.
func (p *program) flags(root *cobra.Command) {
	socket := p.environment("SHAI_SOCKET")
	if socket == "" {
		socket = defaultSocket
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.target.Socket, "socket", socket, "unix socket of the monitor; SHAI_SOCKET sets the default")
	flags.StringVar(&p.target.Server, "server", "",
		"address (host:port) of a monitor on another machine, instead of the socket")
	flags.StringVar(&p.target.Certificate, "certificate", "", "PEM file with the certificate to show to the other side")
	flags.StringVar(&p.target.Key, "key", "", "PEM file with the certificate's private key")
	flags.StringVar(&p.target.ServerCA, "server-ca", "", "PEM file with the authority that vouches for --server")
	flags.StringVarP(&p.output, "output", "o", "text", "how to print: text, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// action is what a command does once its command line is understood.
type action func(ctx context.Context, arguments []string) error

// does makes an action a command's. Errors before it are the user's typing.
func (p *program) does(do action) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		switch p.output {
		case "text", "json", "yaml":
		default:
			return fmt.Errorf("--output %q is not known; expected text, json or yaml", p.output)
		}
		p.started = true
		return do(command.Context(), arguments)
	}
}

// group is a command that only has commands beneath it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short}
	onlyCommands(command)
	command.AddCommand(commands...)
	return command
}

// onlyCommands lets a command print its help, and refuse what is no command of it.
func onlyCommands(command *cobra.Command) {
	command.SuggestionsMinimumDistance = 2
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return command.Help()
		}
		hint := ""
		if near := command.SuggestionsFor(arguments[0]); len(near) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", near[0])
		}
		return fmt.Errorf("unknown command %q%s", arguments[0], hint)
	}
}

// takes checks that a command has its arguments, and names them when it has not.
// A last name that ends in "…" may stand for several.
func takes(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		several := strings.HasSuffix(names[len(names)-1], "…")
		if len(arguments) == len(names) || several && len(arguments) > len(names) {
			return nil
		}
		return fmt.Errorf("%s takes %s, got %s", command.CommandPath(), strings.Join(names, " "),
			counted(len(arguments), "argument"))
	}
}

// client connects to the monitor that the flags name.
func (p *program) client() (*api.Client, error) { return api.Connect(p.target) }

// isTerminal tells whether progress may be drawn there.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := file.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}
