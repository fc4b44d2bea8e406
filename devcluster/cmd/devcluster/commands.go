// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"shai.dev/devcluster/internal/directory"
	"shai.dev/devcluster/internal/lifecycle"
	"shai.dev/devcluster/internal/schemas"
	"shai.dev/devcluster/internal/server"
)

// A place is the directory that the command line or the environment names.
type place struct{ given string }

func (p *place) directory() (directory.Directory, error) {
	return directory.Resolve(p.given, os.Getenv)
}

func rootCommand() *cobra.Command {
	// Kubernetes' packages register flags there that mean nothing here.
	pflag.CommandLine = pflag.NewFlagSet("devcluster", pflag.ContinueOnError)
	root := &cobra.Command{
		Use: "devcluster", Short: "A small Kubernetes control plane on this machine", Version: server.Version(),
		Long: `A small Kubernetes control plane on this machine, for development and tests:
etcd, the API server and a few controllers in one process, on loopback only.
Nothing runs Pods. "devcluster kubectl ..." is kubectl for it.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	var p place
	root.PersistentFlags().StringVar(&p.given, "directory", "",
		"directory of the devcluster's files (default $"+directory.Variable+", or $XDG_STATE_HOME/shai/devcluster)")
	root.AddCommand(upCommand(&p), downCommand(&p), statusCommand(&p), kubeconfigCommand(&p), schemasCommand(&p),
		kubectlCommand(),
		serveCommand(&p))
	return root
}

// An output is the flag for the format of results.
type output string

const (
	asText output = "text"
	asJSON output = "json"
)

func (o *output) String() string { return string(*o) }

// Type returns the flag's type for the help.
func (o *output) Type() string { return "text|json" }

// Set sets the flag's value.
func (o *output) Set(value string) error {
	if *o = output(value); *o != asText && *o != asJSON {
		return errors.New("expected text or json")
	}
	return nil
}

func outputFlag(command *cobra.Command) *output {
	chosen := asText
	command.Flags().VarP(&chosen, "output", "o", "how to print the result")
	return &chosen
}

// print prints the value in one line of JSON, or as text.
func (o *output) print(w io.Writer, value any, text func(io.Writer)) error {
	if *o == asText {
		text(w)
		return nil
	}
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

func upCommand(p *place) *cobra.Command {
	var port int
	var foreground bool
	var out *output
	command := &cobra.Command{
		Use: "up", Short: "Start the devcluster and wait until it serves", Args: cobra.NoArgs,
		Long: `Start the devcluster, unless it is running, and print the path of its
kubeconfig once it serves. It keeps the objects of the last run.`,
		Example: "  export KUBECONFIG=$(devcluster up)\n  devcluster up --directory /tmp/d --output json\n  devcluster up --foreground",
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			ready := func(at lifecycle.Endpoint) error {
				return out.print(c.OutOrStdout(), at, func(w io.Writer) { fmt.Fprintln(w, at.Kubeconfig) })
			}
			up := lifecycle.Up{Directory: d, Port: port,
				Progress: func(step string) { fmt.Fprintln(c.ErrOrStderr(), "devcluster:", step) }}
			if foreground {
				return up.Foreground(c.Context(), ready)
			}
			at, err := up.Background(c.Context())
			if err != nil {
				return err
			}
			return ready(at)
		},
	}
	command.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0: that of the last run if it is free, or else any")
	command.Flags().BoolVar(&foreground, "foreground", false, "stay in the foreground; Ctrl-C stops the devcluster")
	out = outputFlag(command)
	return command
}

func downCommand(p *place) *cobra.Command {
	var patience time.Duration
	command := &cobra.Command{
		Use: "down", Short: "Stop the devcluster; its data are kept", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			ending, err := lifecycle.Down(c.Context(), d, patience)
			if err != nil {
				return err
			}
			says := map[lifecycle.Ending]string{
				lifecycle.NotRunning: "no devcluster was running in %s",
				lifecycle.WasKilled:  "no devcluster was running in %s: the last one was killed; its data are kept",
				lifecycle.Stopped:    "stopped the devcluster in %s",
				lifecycle.HadToKill:  "killed the devcluster in %s, since it did not stop in time; its data are kept",
			}
			fmt.Fprintf(c.ErrOrStderr(), "devcluster: "+says[ending]+"\n", d)
			return nil
		},
	}
	command.Flags().DurationVar(&patience, "patience", lifecycle.StopPatience,
		"time limit for stopping, after which it is killed")
	return command
}

func statusCommand(p *place) *cobra.Command {
	var out *output
	command := &cobra.Command{
		Use: "status", Short: "Show whether the devcluster runs; the exit status is 3 if it does not serve",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			status, err := lifecycle.Look(c.Context(), d)
			if err != nil {
				return err
			}
			if err := out.print(c.OutOrStdout(), status, func(w io.Writer) { printStatus(w, status) }); err != nil {
				return err
			}
			if !status.Ready {
				return errNotRunning
			}
			return nil
		},
	}
	out = outputFlag(command)
	return command
}

func printStatus(w io.Writer, s lifecycle.Status) {
	if s.Ready {
		fmt.Fprintf(w, "ready: %s, Kubernetes %s, process %d, since %s\n", s.Server, s.Version, s.Process,
			s.Started.Format(time.RFC3339))
		fmt.Fprintf(w, "kubeconfig: %s\n", s.Kubeconfig)
	} else {
		fmt.Fprintf(w, "not ready: %s\n", s.Reason)
	}
	fmt.Fprintf(w, "directory: %s\n", s.Directory)
}

func kubeconfigCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the kubeconfig",
		Example: "  export KUBECONFIG=$(devcluster kubeconfig)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			if _, err := os.Stat(d.Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no kubeconfig in %s yet: run devcluster up first", d)
			}
			fmt.Fprintln(c.OutOrStdout(), d.Kubeconfig())
			return nil
		},
	}
}

func schemasCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use: "schemas FOLDER", Short: "Write the JSON schemas of all kinds, for kubeconform", Args: cobra.ExactArgs(1),
		Long: `Write a strict JSON schema for each kind that the devcluster serves, including
custom resources, with the file names that kubeconform uses. They have no CEL rules.`,
		Example: "  devcluster schemas build/schemas\n" +
			"  kubeconform -schema-location 'build/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json' manifest.yaml",
		RunE: func(c *cobra.Command, arguments []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			config, err := lifecycle.ReadyClient(c.Context(), d)
			if err != nil {
				return err
			}
			count, err := schemas.Write(config, arguments[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "devcluster: wrote %d schemas to %s\n", count, arguments[0])
			return nil
		},
	}
}

// kubectlCommand is for the help. main has handled the command before, unless another
// word precedes it.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl", Short: "Run kubectl; without $KUBECONFIG it talks to the devcluster", DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("kubectl has to be the first word after devcluster: name the directory with $%s",
				directory.Variable)
		},
	}
}

// serveCommand runs in the process that up starts.
func serveCommand(p *place) *cobra.Command {
	var port int
	var untilInputEnds bool
	command := &cobra.Command{
		Use: "serve", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := p.directory()
			if err != nil {
				return err
			}
			return lifecycle.Serve(d, port, untilInputEnds)
		},
	}
	command.Flags().IntVar(&port, "port", 0, "")
	command.Flags().BoolVar(&untilInputEnds, "until-input-ends", false, "")
	return command
}
