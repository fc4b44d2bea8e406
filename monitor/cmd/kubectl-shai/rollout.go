// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// lookEvery is the time between two looks at a rollout that goes on.
const lookEvery = time.Second

func (p *program) rolloutCommand() *cobra.Command {
	command := &cobra.Command{Use: "rollout", Short: "Follow, hold and take back changes of policies and pipelines"}
	command.AddCommand(p.statusCommand(), p.pauseCommand("pause", "Hold a pipeline's rollout where it stands", true),
		p.pauseCommand("resume", "Let a pipeline's rollout go on", false), p.undoCommand())
	return command
}

func (p *program) statusCommand() *cobra.Command {
	var watch bool
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "status PIPELINE",
		Short: "Show the rollout of a pipeline's last change, and wait for its end",
		Long: `Show where the rollout of a pipeline stands, and return when it has ended. The exit code is
0 if the change is in force on all members, and 1 if it was refused, rolled back or held, or
when the time is over.`,
		Example: "  kubectl shai rollout status syse\n  kubectl shai rollout status syse --watch=false --output json",
		Args:    takes("PIPELINE"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return p.follow(ctx, arguments[0], watch)
		}),
	}
	command.Flags().BoolVarP(&watch, "watch", "w", true, "wait for the end")
	command.Flags().DurationVar(&timeout, "timeout", 24*time.Hour, "how long to wait")
	return command
}

// follow prints a rollout's status each time that it changes, until it has ended.
func (p *program) follow(ctx context.Context, name string, watch bool) error {
	said := ""
	for {
		found, err := p.kubectl.get(ctx, "pipelines", name)
		if ctx.Err() != nil {
			return fmt.Errorf("rollout of pipeline %s: it had not ended when the time was over", name)
		}
		if err != nil {
			return err
		}
		stands := standing(found)
		if text := stands.String(); text != said && (p.output == "text" || stands.Ended || !watch) {
			said = text
			if err := p.print(stands, text); err != nil {
				return err
			}
		}
		switch {
		case stands.Ended && stands.Status != "True":
			return errSaid
		case stands.Ended || !watch:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// rolloutStanding says where a rollout stands.
type rolloutStanding struct {
	Pipeline string   `json:"pipeline"`
	Ended    bool     `json:"ended"` // by itself it goes no further
	Status   string   `json:"status"`
	Reason   string   `json:"reason"`
	Message  string   `json:"message,omitempty"`
	Rollout  progress `json:"rollout"`
	Effect   effect   `json:"effect"`
}

// standing reads where a rollout stands. A status that is about an earlier spec says nothing.
func standing(pipeline object) rolloutStanding {
	s := rolloutStanding{Pipeline: pipeline.name(), Rollout: pipeline.Status.Rollout, Effect: pipeline.Status.Effect,
		Status: "Unknown", Reason: "Pending", Message: "the operator has not looked at the pipeline yet"}
	about := pipeline.find("RolledOut")
	if accepted := pipeline.find("Accepted"); accepted.Status == "False" {
		about = accepted
	}
	if !pipeline.seen() || about.Type == "" {
		return s
	}
	s.Status, s.Reason, s.Message = about.Status, about.Reason, about.Message
	s.Ended = about.Status == "True" || about.Status == "False" && about.Reason != "Progressing"
	return s
}

func (s rolloutStanding) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "pipeline %s: %s", s.Pipeline, s.Reason)
	if s.Rollout.Steps > 0 && !s.Ended {
		fmt.Fprintf(&text, ", step %d of %d, %d members", s.Rollout.Step, s.Rollout.Steps, s.Rollout.Members)
	}
	if s.Message != "" {
		fmt.Fprintf(&text, ": %s", s.Message)
	}
	if !s.Ended && s.Effect.OpenedTotal+s.Effect.ClosedTotal > 0 {
		fmt.Fprintf(&text, " (flows opened %d, closed %d, users %d)", s.Effect.OpenedTotal, s.Effect.ClosedTotal,
			s.Effect.UsersTotal)
	}
	return text.String() + "\n"
}

func (p *program) pauseCommand(verb, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " PIPELINE", Short: short, Args: takes("PIPELINE"),
		Long:    short + ": set spec.rollout.paused. It needs the right to patch the pipeline.",
		Example: "  kubectl shai rollout " + verb + " syse",
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			change := map[string]any{"spec": map[string]any{"rollout": map[string]any{"paused": paused}}}
			if err := p.kubectl.patch(ctx, "pipelines", arguments[0], change); err != nil {
				return err
			}
			return p.print(map[string]any{"pipeline": arguments[0], "paused": paused},
				fmt.Sprintf("pipeline %s: spec.rollout.paused is %t\n", arguments[0], paused))
		}),
	}
}

func (p *program) undoCommand() *cobra.Command {
	var revision int
	command := &cobra.Command{
		Use:   "undo POLICY",
		Short: "Give a policy the text of an earlier revision",
		Long: `Set a policy's text and mode to those of an earlier revision, by default the last one before
the present. This is a change like any other: it is compared, and rolled out in steps. Where
manifests are kept in a repository, change them there, or the change is taken back.`,
		Example: "  kubectl shai rollout undo friends\n  kubectl shai rollout undo friends --to-revision 3",
		Args:    takes("POLICY"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.undo(ctx, arguments[0], revision)
		}),
	}
	command.Flags().IntVar(&revision, "to-revision", 0, "number of the revision; 0: the last one before the present")
	return command
}

func (p *program) undo(ctx context.Context, name string, number int) error {
	policy, err := p.kubectl.get(ctx, "policies", name)
	if err != nil {
		return err
	}
	revisions, err := p.kubectl.list(ctx, "policyrevisions", false)
	if err != nil {
		return err
	}
	chosen, err := earlier(policy, revisions, number)
	if err != nil {
		return err
	}
	change := map[string]any{"spec": map[string]any{"text": chosen.Spec.Text, "mode": chosen.Spec.Mode}}
	if err := p.kubectl.patch(ctx, "policies", name, change); err != nil {
		return err
	}
	return p.print(map[string]any{"policy": name, "revision": chosen.Spec.Revision},
		fmt.Sprintf("policy %s: it has the text of revision %d again\n", name, chosen.Spec.Revision))
}

// earlier chooses the revision to which a policy goes back: the one with this number, or, for 0, the
// last one whose content is not the present one.
func earlier(policy object, revisions []object, number int) (object, error) {
	others := func(r object) bool { return r.Spec.Policy != policy.Metadata.Name }
	own := slices.DeleteFunc(slices.Clone(revisions), others)
	slices.SortFunc(own, func(a, b object) int { return b.Spec.Revision - a.Spec.Revision })
	for _, r := range own {
		same := r.Spec.Text == policy.Spec.Text && r.Spec.Mode == policy.Spec.Mode
		if number == 0 && !same || number != 0 && r.Spec.Revision == number {
			return r, nil
		}
	}
	var known []string
	for _, r := range own {
		known = append(known, fmt.Sprint(r.Spec.Revision))
	}
	if number == 0 {
		return object{}, fmt.Errorf("policy %s has no earlier revision", policy.Metadata.Name)
	}
	return object{}, fmt.Errorf("policy %s has no revision %d; it has %s", policy.Metadata.Name, number,
		strings.Join(known, ", "))
}
