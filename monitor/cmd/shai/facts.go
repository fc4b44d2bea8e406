// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

func (p *program) factsCommand() *cobra.Command {
	add := p.changeFactsCommand("add", "Add a tuple to a conduit", `  shai facts add friends/alice friend bob
  shai facts add blacklist/de blocked /corpus/public/17.txt
  shai facts add --typed limits size '"large"' 17`,
		func(fact api.Fact) api.FactChange { return api.FactChange{Add: []api.Fact{fact}} })
	remove := p.changeFactsCommand("remove", "Remove a tuple from a conduit",
		`  shai facts remove friends/alice friend bob`,
		func(fact api.Fact) api.FactChange { return api.FactChange{Remove: []api.Fact{fact}} })
	return group("facts", "Change the facts that policies use", add, remove)
}

func (p *program) changeFactsCommand(verb, short, example string, change func(api.Fact) api.FactChange) *cobra.Command {
	var typed bool
	command := &cobra.Command{
		Use:   verb + " CONDUIT RELATION VALUE…",
		Short: short,
		Long: short + `. New sessions see the change at once. When a live
session loses an access depends on the pipeline's setting revocation. Values are
texts; with --typed they are JSON: "text", 17 or {"time": "2026-03-01T12:00:00Z"}.`,
		Example: example,
		Args:    takes("CONDUIT", "RELATION", "VALUE…"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			tuple, err := tupleOf(arguments[2:], typed)
			if err != nil {
				return err
			}
			return p.changeFacts(ctx, change(api.Fact{Conduit: arguments[0], Says: arguments[1], Tuple: tuple}))
		}),
	}
	command.Flags().BoolVar(&typed, "typed", false, "read values as JSON instead of as texts")
	return command
}

func tupleOf(words []string, typed bool) (policy.Tuple, error) {
	values := make([]policy.Value, len(words))
	for i, word := range words {
		values[i] = policy.String(word)
		if !typed {
			continue
		}
		if err := json.Unmarshal([]byte(word), &values[i]); err != nil {
			return policy.Tuple{}, fmt.Errorf("read value %q: %w; with --typed, a text needs quotes", word, err)
		}
	}
	return policy.NewTuple(values...), nil
}

func (p *program) changeFacts(ctx context.Context, change api.FactChange) error {
	client, err := p.client()
	if err != nil {
		return err
	}
	result, err := client.ChangeFacts(ctx, change)
	if err != nil {
		return err
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(p.stderr, "warning: %s\n", printable(warning))
	}
	return p.print(result, func(w io.Writer) {
		fmt.Fprintf(w, "%d added, %d removed; %s updated, %s reset, in %s\n", result.Added, result.Removed,
			counted(result.Instances, "instance"), counted(result.SessionsReset, "session"),
			time.Duration(result.DurationMicroseconds)*time.Microsecond)
	})
}
