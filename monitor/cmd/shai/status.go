// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/monitor/api"
)

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what the monitor enforces and what runs",
		Example: "  shai status\n  shai status --output json",
		Args:    cobra.NoArgs,
		RunE: p.does(func(ctx context.Context, _ []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			status, err := client.Status(ctx)
			if err != nil {
				return err
			}
			return p.print(status, func(w io.Writer) { printStatus(w, status) })
		}),
	}
}

func printStatus(w io.Writer, s api.Status) {
	ready := "ready"
	if !s.Ready {
		ready = "not ready: " + s.Reason
	}
	fmt.Fprintf(w, "monitor %s, since %s, %s\n", s.Version, s.Started.Format(time.RFC3339), ready)
	fmt.Fprintf(w, "machine %s, %s: enforcement %s\n", s.Machine.System, s.Machine.Backend, s.Machine.Enforcement)
	if s.Bundle == nil {
		fmt.Fprintln(w, "bundle: none yet; see shai apply")
	} else {
		label := ""
		if s.Bundle.Label != "" {
			label = ", label " + printable(s.Bundle.Label)
		}
		fmt.Fprintf(w, "bundle %d (%.12s), %s, applied %s%s\n", s.Bundle.Version, s.Bundle.Hash,
			counted(s.Bundle.Objects, "object"), s.Bundle.Applied.Format(time.RFC3339), label)
	}
	printFactSources(w, s.FactSources)
	if len(s.Pipelines) > 0 {
		fmt.Fprintln(w)
		printPipelines(w, s.Pipelines)
	}
	printUsers(w, s.Pipelines)
	for _, pipeline := range s.Pipelines {
		printSessions(w, pipeline)
	}
	if len(s.Counters) > 0 {
		fmt.Fprintln(w)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		fmt.Fprintf(w, "%s %s\n", name, grouped(s.Counters[name]))
	}
}

func printFactSources(w io.Writer, sources []api.FactSourceStatus) {
	if len(sources) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"FACT SOURCE", "FACTS", "LAST SUCCESS", "MESSAGE"}}
	for _, s := range sources {
		last := "none since the monitor started"
		if s.LastSuccess != nil {
			last = s.LastSuccess.Format(time.RFC3339)
		}
		rows = append(rows, []string{s.Name, grouped(s.Tuples), last, s.Message})
	}
	table(w, rows)
}

// printUsers shows the users that tasks run as, and the documents that they should be
// able to read but cannot.
func printUsers(w io.Writer, pipelines []api.PipelineStatus) {
	for _, pipeline := range pipelines {
		fmt.Fprintf(w, "tasks of %s %s\n", pipeline.Name, usersOf(pipeline))
		for _, warning := range pipeline.Unreadable {
			fmt.Fprintln(w, "  "+printable(warning))
		}
	}
}

// usersOf says which users a pipeline's tasks run as.
func usersOf(pipeline api.PipelineStatus) string {
	if pipeline.User == 0 {
		return "run as the monitor's own user"
	}
	var own []string
	for _, task := range pipeline.Tasks {
		if task.User != pipeline.User {
			own = append(own, fmt.Sprintf("%s as user %d", task.Name, task.User))
		}
	}
	if len(own) == 0 {
		return fmt.Sprintf("run as user and group %d", pipeline.User)
	}
	return fmt.Sprintf("run as user and group %d; %s", pipeline.User, strings.Join(own, ", "))
}

func printSessions(w io.Writer, pipeline api.PipelineStatus) {
	if len(pipeline.Sessions) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"SESSION", "PEER", "REGION", "SLOT", "MODE", "SINCE"}}
	for _, s := range pipeline.Sessions {
		rows = append(rows, []string{s.Instance, s.Peer, either(s.Region, "-"), strconv.Itoa(s.Slot), s.Mode,
			s.Since.Format(time.RFC3339)})
	}
	table(w, rows)
	if hidden := pipeline.SessionTotal - len(pipeline.Sessions); hidden > 0 {
		fmt.Fprintf(w, "… and %d more\n", hidden)
	}
}

// about is the output of shai version.
type about struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Go       string `json:"go"`
	System   string `json:"system"`
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version", Example: "  shai version", Args: cobra.NoArgs,
		RunE: p.does(func(context.Context, []string) error {
			a := about{Version: edition.Version(), Revision: edition.Revision(), Go: runtime.Version(),
				System: runtime.GOOS + "/" + runtime.GOARCH}
			return p.print(a, func(w io.Writer) { fmt.Fprintf(w, "shai %s, %s, %s\n", a.Version, a.Go, a.System) })
		}),
	}
}
