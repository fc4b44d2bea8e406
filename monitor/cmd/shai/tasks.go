// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) taskCommand() *cobra.Command {
	var wait bool
	start := p.taskActionCommand("start", printTask, "Start a task in its sandbox",
		"  shai task start syse search\n  shai task start syse indexer --wait",
		func(ctx context.Context, client *api.Client, pipeline, task string) (api.TaskStatus, error) {
			status, err := client.StartTask(ctx, pipeline, task)
			if err == nil && wait {
				status, err = client.WaitTask(ctx, pipeline, task)
			}
			return status, err
		})
	start.Flags().BoolVar(&wait, "wait", false, "return when the task has ended; the exit code is 1 if it failed")
	stop := p.taskActionCommand("stop", printTask, "Stop a task and every process it forked",
		"  shai task stop syse search",
		func(ctx context.Context, client *api.Client, pipeline, task string) (api.TaskStatus, error) {
			return client.StopTask(ctx, pipeline, task)
		})
	await := p.taskActionCommand("wait", printTask, "Wait until a task has ended", "  shai task wait syse indexer",
		func(ctx context.Context, client *api.Client, pipeline, task string) (api.TaskStatus, error) {
			return client.WaitTask(ctx, pipeline, task)
		})
	status := p.taskActionCommand("status", printTaskAndRun, "Show the state of a task, and its last run",
		"  shai task status syse indexer\n  shai task status syse indexer --output json", statusOfTask)
	return group("task", "Start, stop and list tasks, read their logs, learn what they use", start, stop, await, status,
		p.taskListCommand(), p.taskLogCommand(), p.taskLearnCommand())
}

func (p *program) taskLogCommand() *cobra.Command {
	var request api.TaskLogRequest
	command := &cobra.Command{
		Use: "log PIPELINE TASK", Short: "Print what a task has printed, if one may read it",
		Long: `Print the end of a task's log, at most 1 MiB. What a task prints is under the task's
taint: the obligations are the label, which is printed to standard error. An
administrator, who can use the monitor's socket or has a client certificate, reads every
log. With --as, the policies decide whether a user may. Each reading is recorded. Of the
log before (--previous), the label is unknown: administrators alone read it.`,
		Example:           "  shai task log syse indexer\n  shai task log syse indexer --as alice --region de",
		Args:              takes("PIPELINE", "TASK"),
		ValidArgsFunction: p.completeTasks,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			request.Pipeline, request.Task = arguments[0], arguments[1]
			log, err := client.TaskLog(ctx, request)
			if err != nil {
				return err
			}
			return p.print(log, func(w io.Writer) {
				fmt.Fprintf(p.stderr, "label: %s\n", printable(log.Label))
				if log.Shortened {
					fmt.Fprintln(p.stderr, "there is more before this:")
				}
				io.WriteString(w, printableLines(log.Text))
			})
		}),
	}
	command.Flags().StringVar(&request.As, "as", "", "read it for this user, who has to be allowed to")
	command.Flags().StringVar(&request.Region, "region", "", "region of --as")
	command.Flags().BoolVar(&request.Previous, "previous", false, "what it printed under the label before the present one")
	return command
}

// statusOfTask finds a task in the monitor's status.
func statusOfTask(ctx context.Context, client *api.Client, pipeline, task string) (api.TaskStatus, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return api.TaskStatus{}, err
	}
	for _, one := range status.Pipelines {
		at := slices.IndexFunc(one.Tasks, func(t api.TaskStatus) bool { return t.Name == task })
		if one.Name == pipeline && at >= 0 {
			return one.Tasks[at], nil
		}
	}
	return api.TaskStatus{}, api.NotFound("task "+pipeline+"/"+task, "see shai task list", "there is no such task")
}

type taskAction func(ctx context.Context, client *api.Client, pipeline, task string) (api.TaskStatus, error)

func (p *program) taskActionCommand(verb string, show func(io.Writer, string, api.TaskStatus), short, example string,
	do taskAction) *cobra.Command {
	return &cobra.Command{
		Use: verb + " PIPELINE TASK", Short: short, Example: example,
		Args:              takes("PIPELINE", "TASK"),
		ValidArgsFunction: p.completeTasks,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			status, err := do(ctx, client, arguments[0], arguments[1])
			if err != nil {
				return err
			}
			err = p.print(status, func(w io.Writer) { show(w, arguments[0], status) })
			if err == nil && status.State == "Failed" {
				return errSaid
			}
			return err
		}),
	}
}

func printTask(w io.Writer, pipeline string, status api.TaskStatus) {
	fmt.Fprintf(w, "task %s/%s: %s", pipeline, status.Name, status.State)
	if status.PID != 0 {
		fmt.Fprintf(w, ", process %d", status.PID)
	}
	if status.Enforcement != "" {
		fmt.Fprintf(w, ", enforcement %s", status.Enforcement)
	}
	if status.Restarts > 0 {
		fmt.Fprintf(w, ", restarts %d (last end: %s)", status.Restarts, printable(status.LastEnd))
	}
	if status.Message != "" {
		fmt.Fprintf(w, ": %s", printable(status.Message))
	}
	fmt.Fprintln(w)
}

func printTaskAndRun(w io.Writer, pipeline string, status api.TaskStatus) {
	printTask(w, pipeline, status)
	if status.LastRun != nil {
		printRun(w, *status.LastRun)
	}
}

// printRun writes which run it is, and what was denied in it.
func printRun(w io.Writer, run api.TaskRun) {
	fmt.Fprintf(w, "run %s: started %s", printable(run.ID), run.Started.UTC().Format(time.RFC3339))
	if run.Ended != nil {
		fmt.Fprintf(w, ", ended %s", run.Ended.UTC().Format(time.RFC3339))
	}
	if run.ExitStatus != nil {
		fmt.Fprintf(w, ", exit status %d", *run.ExitStatus)
	}
	if run.Signal != "" {
		fmt.Fprintf(w, ", signal %s", printable(run.Signal))
	}
	if run.Denials > 0 {
		fmt.Fprintf(w, ", %s", counted(run.Denials, "denial"))
	}
	fmt.Fprintln(w)
	for _, refusal := range run.Refusals {
		fmt.Fprintf(w, "  denied %s: %s of %s by policy %s\n", counted(refusal.Count, "time"),
			printable(refusal.Operation), printable(either(refusal.Conduits, "what is no conduit of the pipeline")),
			printable(either(refusal.Policy, "none")))
	}
}

// messages says what is to be said about a task in a table, whose last column has room.
func messages(status api.TaskStatus) string {
	if status.LastEnd == "" {
		return status.Message
	}
	return strings.TrimPrefix(status.Message+"; last end: "+status.LastEnd, "; ")
}

func (p *program) taskListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list [PIPELINE]", Short: "List tasks and their state", Example: "  shai task list\n  shai task list syse",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completePipelines,
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			pipelines, err := p.pipelines(ctx, arguments)
			if err != nil {
				return err
			}
			tasks := map[string][]api.TaskStatus{}
			for _, pipeline := range pipelines {
				tasks[pipeline.Name] = pipeline.Tasks
			}
			return p.print(tasks, func(w io.Writer) {
				rows := [][]string{{"PIPELINE", "TASK", "STATE", "RUN", "PROCESS", "RESTARTS", "ENFORCEMENT",
					"MESSAGE"}}
				for _, pipeline := range pipelines {
					for _, t := range pipeline.Tasks {
						process := "-"
						if t.PID != 0 {
							process = strconv.Itoa(t.PID)
						}
						rows = append(rows, []string{pipeline.Name, t.Name, t.State, t.Run, process,
							strconv.Itoa(t.Restarts),
							either(t.Enforcement, "-"), messages(t)})
					}
				}
				table(w, rows)
			})
		}),
	}
}

// pipelines returns all pipelines, or the one that names contains.
func (p *program) pipelines(ctx context.Context, names []string) ([]api.PipelineStatus, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil || len(names) == 0 {
		return status.Pipelines, err
	}
	for _, pipeline := range status.Pipelines {
		if pipeline.Name == names[0] {
			return []api.PipelineStatus{pipeline}, nil
		}
	}
	return nil, api.NotFound("pipeline "+names[0], "see shai pipeline list", "there is no such pipeline")
}
