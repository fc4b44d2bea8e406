// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/offline"
)

// offlineFlags name manifests that are asked about instead of a monitor.
type offlineFlags struct {
	files, define, facts []string
	data                 string
}

func (f *offlineFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"file or directory with manifests to ask about, - for standard input; may be repeated")
	flags.StringVar(&f.data, "data", "", "with -f: directory with the pipelines' files and fact files")
	flags.StringArrayVar(&f.define, "define", nil, "with -f: NAME=VALUE for $(NAME) in manifests; may be repeated")
	flags.StringArrayVar(&f.facts, "facts", nil,
		"with -f: file of JSON lines with facts in addition to those of the manifests; may be repeated")
}

// given reports whether manifests are asked about. It refuses flags that need them.
func (f *offlineFlags) given(command *cobra.Command) (bool, error) {
	if len(f.files) > 0 {
		return true, nil
	}
	for _, name := range []string{"data", "define", "facts"} {
		if command.Flags().Changed(name) {
			return false, fmt.Errorf("--%s is of manifests; name them with -f", name)
		}
	}
	return false, nil
}

// project loads the manifests, of which about has what a question is about.
func (p *program) project(ctx context.Context, flags offlineFlags, about offline.Options) (*offline.Project, error) {
	sources, err := manifest.Read(p.stdin, flags.files...)
	if err != nil {
		return nil, err
	}
	options := about
	options.Data = flags.data
	if options.Define, err = definitions(flags.define); err != nil {
		return nil, err
	}
	if options.Facts, err = factsOf(flags.facts); err != nil {
		return nil, err
	}
	project, err := offline.Load(ctx, sources, options)
	if err != nil {
		return nil, p.said(err)
	}
	for _, missing := range project.Missing {
		fmt.Fprintf(p.stderr, "not known: %s\n", printable(missing))
	}
	return project, nil
}

// offline runs an action about manifests, and removes what was made of them.
func (p *program) offline(ctx context.Context, flags offlineFlags, about offline.Options,
	do func(*offline.Project) error) error {
	project, err := p.project(ctx, flags, about)
	if err != nil {
		return err
	}
	return errors.Join(do(project), project.Close())
}

// mostChoices limits the choices that are named.
const mostChoices = 5

// tellChoices says which choices of policies an answer does not count.
func (p *program) tellChoices(choices []offline.Choice) {
	for i, one := range choices {
		if i == mostChoices {
			fmt.Fprintf(p.stderr, "not known: choices: and %d more\n", len(choices)-i)
			return
		}
		fmt.Fprintf(p.stderr, "not known: choices: %s may choose %s for %s, which then decides\n",
			printable(one.Principal), printable(one.Policy), printable(one.Conduit))
	}
}

func (p *program) whoCommand() *cobra.Command {
	var flags offlineFlags
	var at string
	request := api.ReadersRequest{Limit: 100}
	command := &cobra.Command{
		Use:   "who -f FILE --conduit PATH",
		Short: "List who could access a conduit under manifests; needs no monitor",
		Long: `List the users, and the tasks without users, that could access a conduit if the manifests
were in force. Not in it are users that no expectation of the pipeline names, and accesses that
depend on an address or on how long ago something was. Choices of another policy for the conduit
are named, and not counted. Of a monitor, "shai readers" lists them.`,
		Example: `  shai who -f crds/examples/syse --data /srv/data --conduit /corpus/friends/alice/1.txt
  shai who -f pipeline.yaml --conduit /summary/words.txt --access write --output json`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkReaders(request) },
		RunE: p.does(func(ctx context.Context, _ []string) error {
			now, err := instantOf(at)
			if err != nil {
				return err
			}
			about := offline.Options{Conduits: []string{request.Conduit}}
			return p.offline(ctx, flags, about, func(project *offline.Project) error {
				readers, err := project.Who(ctx, request, now)
				if err != nil {
					return err
				}
				p.tellChoices(readers.Choices)
				return p.print(readers, func(w io.Writer) { printReaders(w, readers.Readers) })
			})
		}),
	}
	flags.add(command)
	f := command.Flags()
	f.StringVar(&request.Conduit, "conduit", "", "conduit, by its name in the pipeline: /corpus/public/17.txt")
	f.StringVar(&request.Access, "access", "read", "read or write")
	f.StringVar(&request.Pipeline, "pipeline", "", "pipeline; optional if there is only one")
	f.IntVar(&request.Limit, "limit", 100, "number of users to list")
	f.StringVar(&at, "time", "", "an RFC 3339 time instead of now")
	_ = command.MarkFlagRequired("conduit")
	_ = command.MarkFlagRequired("filename")
	return command
}

func checkAccess(access string) error {
	if access != "read" && access != "write" {
		return fmt.Errorf("--access %q is not known; expected read or write", access)
	}
	return nil
}

func (p *program) whatCommand() *cobra.Command {
	var flags offlineFlags
	var pipeline, principal, region, at string
	command := &cobra.Command{
		Use:   "what -f FILE --principal NAME",
		Short: "List what a user could access under manifests; needs no monitor",
		Long: `List the classes of conduits that a user could access if the manifests were in force, in
each task and region that is expected of the user. All conduits of a class are decided alike.
NUMBER says how many there are; the files of a directory are not counted, it is given as a whole.
Choices of another policy for documents are named, and not counted. A task without users is
"task/NAME".`,
		Example: `  shai what -f crds/examples/syse --data /srv/data --principal alice
  shai what -f pipeline.yaml --principal task/count --output json`,
		Args: cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			now, err := instantOf(at)
			if err != nil {
				return err
			}
			about := offline.Options{Examples: true}
			if !strings.HasPrefix(principal, "task/") {
				about.Users = []string{principal}
			}
			return p.offline(ctx, flags, about, func(project *offline.Project) error {
				reach, err := project.What(pipeline, principal, region, now)
				if err != nil {
					return err
				}
				p.tellChoices(reach.Choices)
				return p.print(reach, func(w io.Writer) { printReach(w, reach) })
			})
		}),
	}
	flags.add(command)
	f := command.Flags()
	f.StringVar(&principal, "principal", "", `user, or "task/NAME"`)
	f.StringVar(&region, "region", "", "only from this region")
	f.StringVar(&pipeline, "pipeline", "", "pipeline; optional if there is only one")
	f.StringVar(&at, "time", "", "an RFC 3339 time instead of now")
	_ = command.MarkFlagRequired("principal")
	_ = command.MarkFlagRequired("filename")
	return command
}

func printReach(w io.Writer, r offline.Reach) {
	if len(r.Classes) == 0 {
		fmt.Fprintf(w, "%s may access nothing in pipeline %s\n", printable(r.Principal), printable(r.Pipeline))
		return
	}
	rows := [][]string{{"INSTANCE", "ACCESS", "CONDUITS", "POLICY", "NUMBER", "EXAMPLE"}}
	for _, one := range r.Classes {
		number, example := "directory", one.Directory
		if one.Members != nil {
			number, example = grouped(uint64(*one.Members)), one.Example
		}
		rows = append(rows, []string{one.Instance, one.Access, one.Conduits, either(one.Policy, "-"), number,
			either(example, "-")})
	}
	table(w, rows)
}

// explainOffline explains an access under manifests.
func (p *program) explainOffline(ctx context.Context, flags offlineFlags, question api.Question, now time.Time) error {
	about := offline.Options{Conduits: []string{question.Conduit}}
	return p.offline(ctx, flags, about, func(project *offline.Project) error {
		explanation, err := project.Explain(question, now)
		if err != nil {
			return err
		}
		p.tellChoices(explanation.Choices)
		return p.print(explanation, func(w io.Writer) {
			explanation.Print(w)
			if explanation.Suggestion != "" {
				fmt.Fprintf(w, "\nit would be allowed with this change: %s\n", printable(strings.TrimSpace(explanation.Suggestion)))
			}
		})
	})
}
