// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/shape"
)

func (p *program) logsCommand() *cobra.Command {
	var asked logQuestion
	var r reader
	var tail, most int
	command := &cobra.Command{
		Use:   "logs RUN | PIPELINE/TASK",
		Short: "Show what a task has printed on a member",
		Long: `Show what a task has printed on a member: of a TaskRun, or of a task of a pipeline. Runs of one
task on one member print to one log. What a task prints is under the task's taint: the
obligations are the label, which is printed to standard error.

Who may create MemberReadings in the namespace reads every log as an administrator; with
--principal the policies decide whether that user may. The member records each page that is
read, with your name. What it answers is encrypted for this command: neither the API server
nor its store, backups or audit log has the text.`,
		Example: `  kubectl shai logs count-again
  kubectl shai logs minimal/count --member minimal-1 --tail 20
  kubectl shai logs syse/indexer --principal alice --region de`,
		Args: takes("RUN or PIPELINE/TASK"),
		PreRunE: func(*cobra.Command, []string) error {
			if asked.Region != "" && asked.Principal == "" {
				return errors.New("--region is the region of --principal, which is missing")
			}
			if tail < -1 || most < 0 {
				return errors.New("--tail and --limit-bytes are numbers from 0; --tail -1 means all lines")
			}
			return nil
		},
		ValidArgsFunction: p.completeRuns,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			r.kubectl = p.kubectl
			pipeline, task, found := strings.Cut(arguments[0], "/")
			if found {
				asked.Task = task
			} else {
				asked.TaskRun, pipeline = pipeline, ""
			}
			shown, err := readLog(ctx, &r, question{Pipeline: pipeline, Log: &asked}, tail, most)
			if err != nil {
				return err
			}
			return p.showLog(shown)
		}),
	}
	r.flags(command)
	flags := command.Flags()
	flags.IntVar(&tail, "tail", -1, "how many lines from the end; -1: all")
	flags.IntVar(&most, "limit-bytes", 1<<20, "how many bytes from the end, about; 0: all that the member has kept")
	flags.BoolVar(&asked.Previous, "previous", false, "what was printed under the label before the present one")
	flags.StringVar(&asked.Principal, "principal", "", "read it for this user, whom the policies have to allow it")
	flags.StringVar(&asked.Region, "region", "", "region of --principal")
	return command
}

// shownLog is what logs shows.
type shownLog struct {
	Member    string `json:"member"`
	Label     string `json:"label"`
	Text      string `json:"text"`      // bytes that are not UTF-8 are replaced
	Shortened bool   `json:"shortened"` // there is more before it
}

// readLog reads pages from the end of a log, until it has as many lines, or about as many bytes, as
// are wanted.
func readLog(ctx context.Context, r *reader, asked question, tail, most int) (shownLog, error) {
	shown, text := shownLog{}, []byte{}
	for {
		answer, err := r.read(ctx, asked)
		if err != nil {
			return shown, err
		}
		page := answer.Log
		if page == nil {
			return shown, errors.New("the member has answered another question")
		}
		if shown.Label != "" && shown.Label != page.Label {
			return shown, errors.New("the log's label has changed meanwhile; read it again")
		}
		shown.Member, shown.Label = r.member, page.Label
		text = append(bytes.Clone(page.Text), text...)
		if lines, cut := last(text, tail); cut {
			shown.Text, shown.Shortened = strings.ToValidUTF8(string(lines), "\uFFFD"), true
			return shown, nil
		}
		if page.Before == "" || most > 0 && len(text) >= most {
			shown.Text, shown.Shortened = strings.ToValidUTF8(string(text), "\uFFFD"), page.Before != ""
			return shown, nil
		}
		asked.Log.Before = page.Before
	}
}

// last returns the last lines of a text, and whether it has more than these; -1: all.
func last(text []byte, lines int) ([]byte, bool) {
	if lines < 0 {
		return text, false
	}
	rest := bytes.TrimSuffix(text, []byte("\n"))
	end := len(rest)
	for ; lines > 0 && end >= 0; lines-- {
		end = bytes.LastIndexByte(rest[:end], '\n')
	}
	if end < 0 {
		return text, false
	}
	if end == len(rest) { // no line is wanted
		return nil, len(text) > 0
	}
	return text[end+1:], true
}

func (p *program) showLog(shown shownLog) error {
	if p.output == "text" {
		fmt.Fprintf(p.stderr, "member: %s, label: %s\n", shape.Visible(shown.Member), shape.Visible(shown.Label))
		if shown.Shortened {
			fmt.Fprintln(p.stderr, "there is more before this:")
		}
	}
	return p.print(shown, shown.Text)
}

// completeRuns completes the names of TaskRuns, and pipelines with their tasks.
func (p *program) completeRuns(command *cobra.Command, before []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(before) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	runs, _ := p.kubectl.list(command.Context(), "taskruns", false) // who may read logs need not read these
	for _, one := range runs {
		names = append(names, one.Metadata.Name)
	}
	pipelines, _ := p.kubectl.list(command.Context(), "pipelines", false)
	for _, one := range pipelines {
		for _, task := range one.Spec.Tasks {
			names = append(names, one.Metadata.Name+"/"+task)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completePipelines completes the names of pipelines.
func (p *program) completePipelines(
	command *cobra.Command, before []string, _ string,
) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(before) == 0 {
		pipelines, _ := p.kubectl.list(command.Context(), "pipelines", false)
		for _, one := range pipelines {
			names = append(names, one.Metadata.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
