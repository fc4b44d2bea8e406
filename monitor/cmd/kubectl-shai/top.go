// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/shape"
)

func (p *program) topCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "top",
		Short: "Show pipelines, what runs now, and the members of their pools",
		Long: `Show, from the objects' statuses: pipelines and their rollouts, runs that go on, and the
members of the pools with their sessions, if you may read JailPools. For what a monitor does
at this moment, see shai top on its member.`,
		Example: "  kubectl shai top\n  kubectl shai top -A --output json",
		Args:    cobra.NoArgs,
		RunE:    p.does(func(ctx context.Context, _ []string) error { return p.top(ctx, all) }),
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return command
}

// overview is what top shows.
type overview struct {
	Pipelines []pipelineRow `json:"pipelines"`
	Runs      []runRow      `json:"runs"`
	Members   []memberRow   `json:"members"`
	// Unreadable says why parts are missing.
	Unreadable []string `json:"unreadable,omitempty"`
}

type pipelineRow struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Pool    string `json:"pool"`
	Ready   string `json:"ready"`
	Reason  string `json:"reason"`
	Members int    `json:"members"`
}

type runRow struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Of     string `json:"pipeline"`
	Reason string `json:"reason"`
}

type memberRow struct {
	Pool string `json:"pool"`
	member
}

func (p *program) top(ctx context.Context, all bool) error {
	pipelines, err := p.kubectl.list(ctx, "pipelines", all)
	if err != nil {
		return err
	}
	var shown overview
	for _, one := range pipelines {
		ready := one.find("Ready")
		shown.Pipelines = append(shown.Pipelines, pipelineRow{one.name(), one.Spec.Mode, one.Spec.Pool, ready.Status,
			ready.Reason, one.Status.Members.Count})
	}
	for _, kind := range []string{"taskruns", "analysisruns", "benchmarks"} {
		found, err := p.kubectl.list(ctx, kind, all)
		if err != nil {
			shown.Unreadable = append(shown.Unreadable, err.Error())
		}
		for _, one := range found {
			if c := one.find("Succeeded"); c.Status != "True" && c.Status != "False" {
				shown.Runs = append(shown.Runs, runRow{one.Kind, one.name(), one.Spec.Pipeline, c.Reason})
			}
		}
	}
	pools, err := p.kubectl.list(ctx, "jailpools", false)
	if err != nil {
		shown.Unreadable = append(shown.Unreadable, err.Error())
	}
	for _, pool := range pools {
		for _, one := range pool.Status.Members.Rows {
			shown.Members = append(shown.Members, memberRow{pool.Metadata.Name, one})
		}
	}
	return p.print(shown, shown.String())
}

func (o overview) String() string {
	pipelines := [][]string{{"PIPELINE", "MODE", "POOL", "READY", "REASON", "MEMBERS"}}
	for _, r := range o.Pipelines {
		pipelines = append(pipelines, []string{r.Name, r.Mode, r.Pool, r.Ready, r.Reason, fmt.Sprint(r.Members)})
	}
	runs := [][]string{{"RUN", "NAME", "PIPELINE", "REASON"}}
	for _, r := range o.Runs {
		runs = append(runs, []string{r.Kind, r.Name, r.Of, r.Reason})
	}
	rows := [][]string{{"MEMBER", "POOL", "READY", "REASON", "SESSIONS", "RELEASE"}}
	for _, r := range o.Members {
		rows = append(rows, []string{r.Name, r.Pool, r.Ready, r.Reason, fmt.Sprint(r.Sessions), r.Release})
	}
	var text strings.Builder
	for _, table := range [][][]string{pipelines, runs, rows} {
		if len(table) > 1 {
			text.WriteString(shape.Table(table) + "\n")
		}
	}
	for _, why := range o.Unreadable {
		fmt.Fprintf(&text, "not shown: %s\n", why)
	}
	if text.Len() == 0 {
		return "there are no pipelines and no pools\n"
	}
	return text.String()
}
