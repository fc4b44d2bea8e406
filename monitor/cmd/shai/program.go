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

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the command failed
	exitUsage   = 2 // the command line was wrong
)

// program is one run of the command line, with its input and output.
type program struct {
	stdin       io.Reader
	stdout      io.Writer
	stderr      io.Writer
	environment func(string) string
	probe       func() (sandbox.Report, error)
	monitor     func(context.Context, monitor.Options) error

	target  api.Target
	output  string
	started bool // the command line was valid; later errors are no usage errors
}

// run executes a command line and returns the exit code.
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
	case errors.Is(err, errNo):
		return exitNo
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(p.stderr, "shai: interrupted")
		return exitFailure
	}
	var wrong usageError
	if !p.started || errors.As(err, &wrong) {
		fmt.Fprintf(p.stderr, "shai: %v; see %s --help\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "shai: %s\n", printableLines(err.Error()))
	var problem *api.Problem
	if errors.As(err, &problem) {
		for _, one := range problem.Errors {
			fmt.Fprintf(p.stderr, "  %s\n", strings.ReplaceAll(printableLines(one), "\n", "\n  "))
		}
	}
	return exitFailure
}

// usageError is about the command line, and found while the command runs.
type usageError string

func (e usageError) Error() string { return string(e) }

// usage returns a usageError.
func usage(format string, arguments ...any) error {
	return usageError(fmt.Sprintf(format, arguments...))
}

// errSaid ends a command that failed and has already printed the reason.
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
		Version:       edition.Version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	onlyCommands(root)
	p.flags(root)
	root.AddCommand(
		p.applyCommand(), p.compareCommand(), p.monitorCommand(), p.analyzeCommand(), p.explainCommand(),
		p.readersCommand(), p.whoCommand(), p.whatCommand(),
		p.policyCommand(),
		p.auditCommand(), p.doctorCommand(), p.factsCommand(), p.ingestCommand(), p.pipelineCommand(), p.taskCommand(),
		p.reportCommand(), p.statusCommand(), p.metricsCommand(), p.topCommand(), p.restoreCommand(),
		p.validateCommand(), p.keyValueCommand(), p.versionCommand(),
	)
	return root
}

// flags adds the flags of all commands.
func (p *program) flags(root *cobra.Command) {
	socket := p.environment("SHAI_SOCKET")
	if socket == "" {
		socket = defaultSocket
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.target.Socket, "socket", socket, "unix socket of the monitor; SHAI_SOCKET sets the default")
	flags.StringVar(&p.target.Server, "server", "",
		"address (host:port) of a monitor, instead of the socket")
	flags.StringVar(&p.target.Certificate, "certificate", "", "PEM file with this side's certificate")
	flags.StringVar(&p.target.Key, "key", "", "PEM file with the certificate's private key")
	flags.StringVar(&p.target.ServerCA, "server-ca", "", "PEM file with the certificate authority of --server")
	flags.StringVarP(&p.output, "output", "o", "text", "how to print: text, json or yaml")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// action is the part of a command that runs after its command line was checked.
type action func(ctx context.Context, arguments []string) error

// does returns the function that runs an action. Errors before it are usage errors.
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

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short}
	onlyCommands(command)
	command.AddCommand(commands...)
	return command
}

// onlyCommands makes a command print its help, and refuse unknown subcommands.
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

// takes checks the number of a command's arguments; the error names them. A last name
// that ends in "…" stands for one or more.
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

// isTerminal reports whether progress can be drawn on w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	about, err := file.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}
