// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/policytest"
	"shai.dev/monitor/policy"
)

// evaluated is the result of shai policy eval.
type evaluated struct {
	Allowed    bool               `json:"allowed"`
	Operation  string             `json:"operation"`
	Policy     string             `json:"policy"`
	Conduit    string             `json:"conduit"`
	Sentence   string             `json:"sentence"` // "it" is the conduit
	Derivation *policy.Derivation `json:"derivation"`
	Conditions []string           `json:"conditions,omitempty"` // on which the answer rests
	Remedy     string             `json:"remedy,omitempty"`     // the fact with which it would be allowed
}

// evalFlags are the command-line flags of shai policy eval.
type evalFlags struct {
	session   sessionFlags
	manifests offlineFlags
	name      string
	arguments []string
	operation string
	conduit   policy.Conduit
	kind, to  string
	toName    string
	content   string
	length    int64
	internal  bool
}

func (p *program) policyEvalCommand() *cobra.Command {
	var flags evalFlags
	command := &cobra.Command{
		Use:   "eval FILE.pol | eval -f FILE --conduit PATH",
		Short: "Evaluate a policy for one session",
		Long: `Evaluate one policy: may this principal read a conduit, update it, or may data derived from
it flow to another kind of conduit (derive)? The policy is one of a policy file with
--argument for its parameters, or with -f the one that the manifests' paths give to --conduit.

What is not given, such as the content of a write, is absent: conditions about it do not hold.
The derivation shows which clause holds or fails. The exit code is 0 if it is allowed, 3 if it
is denied.`,
		Example: `  shai policy eval friends.pol --argument owner=alice --principal bob --facts facts.jsonl
  shai policy eval log.pol --argument auditor=eve --principal bob --operation update --content entries.jsonl
  shai policy eval topics.pol --operation derive --to file --type topics --content topics.jsonl
  shai policy eval -f crds/examples/minimal --conduit /inbox/alice/1.txt --principal alice`,
		Args: cobra.MaximumNArgs(1),
		PreRunE: func(command *cobra.Command, arguments []string) error {
			if !slices.Contains(policytest.Operations(), flags.operation) {
				return fmt.Errorf("--operation %q is not known; expected %s", flags.operation,
					strings.Join(policytest.Operations(), ", "))
			}
			if (len(arguments) == 1) == (len(flags.manifests.files) > 0) {
				return errors.New("give a policy file, or manifests with -f")
			}
			if len(flags.manifests.files) > 0 && !command.Flags().Changed("conduit") {
				return errors.New("give --conduit: its path in the manifests says which policy it has")
			}
			if (command.Flags().Changed("to") || command.Flags().Changed("to-name")) && flags.operation != string(policytest.Derive) {
				return errors.New("--to and --to-name are where derived data flow; give --operation derive")
			}
			flags.conduit.Measured = command.Flags().Changed("length")
			if len(arguments) == 1 && (flags.manifests.data != "" || len(flags.manifests.define) > 0) {
				return errors.New("--data and --define are of manifests; name them with -f")
			}
			return nil
		},
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			return p.evalPolicy(ctx, flags, arguments)
		}),
	}
	flags.add(command)
	return command
}

func (e *evalFlags) add(command *cobra.Command) {
	e.session.add(command)
	e.manifests.add(command)
	f := command.Flags()
	f.Lookup("facts").Usage = "file of JSON lines with facts; may be repeated"
	f.StringVar(&e.name, "policy", "", "which of several policies of the file")
	f.StringArrayVar(&e.arguments, "argument", nil, "NAME=VALUE for a parameter of the policy; may be repeated")
	f.StringVar(&e.operation, "operation", "read", "read, update or derive")
	f.StringVar(&e.conduit.Name, "conduit", "/the/conduit", "name of the conduit that the policy is on: this")
	f.StringVar(&e.kind, "kind", "file", "kind of the conduit")
	f.Int64Var(&e.conduit.Length, "length", 0, "bytes in the conduit before an update")
	f.StringVar(&e.conduit.Type, "type", "", "declared shape of the conduit's content, or with derive of where data flow")
	f.BoolVar(&e.internal, "internal", false, "the conduit connects tasks of the pipeline")
	f.StringVar(&e.to, "to", "connection", "with derive: kind of the conduit to which the derived data flow")
	f.StringVar(&e.toName, "to-name", "/the/target", "with derive: name of the conduit to which the derived data flow")
	f.StringVar(&e.content, "content", "", "with update and derive: file of JSON lines with the tuples that are written, and nothing else")
	f.Int64Var(&e.length, "new-length", 0, "with --content: bytes in the conduit afterwards")
	_ = command.RegisterFlagCompletionFunc("operation",
		cobra.FixedCompletions(policytest.Operations(), cobra.ShellCompDirectiveNoFileComp))
}

func (p *program) evalPolicy(ctx context.Context, flags evalFlags, arguments []string) error {
	question, err := flags.question()
	if err != nil {
		return err
	}
	if len(flags.manifests.files) > 0 {
		about := offline.Options{Conduits: []string{flags.conduit.Name}}
		return p.offline(ctx, flags.manifests, about, func(project *offline.Project) error {
			question.State = project.State()
			found, err := project.Conduit(flags.conduit.Name)
			if err != nil {
				return err
			}
			found.Length, found.Measured = question.Conduit.Length, question.Conduit.Measured
			if question.Conduit.Type != "" {
				found.Type = question.Conduit.Type
			}
			question.Conduit = found
			return p.answer(question)
		})
	}
	facts, err := factsOf(flags.manifests.facts)
	if err != nil {
		return err
	}
	if question.State, err = stateOf(facts); err != nil {
		return err
	}
	values, err := argumentsOf(flags.arguments)
	if err != nil {
		return err
	}
	policies, err := policytest.ReadPolicies(arguments[0])
	if err != nil {
		return p.said(err)
	}
	template, err := policies.Only(flags.name)
	if err != nil {
		return usage("%s: %v; choose it with --policy", arguments[0], err)
	}
	if question.Conduit.Policy, err = template.Bind(values); err != nil {
		return usage("%v; give its parameters with --argument NAME=VALUE", err)
	}
	return p.answer(question)
}

// question reads what the flags say, apart from the policy and the state.
func (e *evalFlags) question() (policytest.Question, error) {
	question := policytest.Question{Operation: policytest.Operation(e.operation), Conduit: e.conduit}
	var err error
	if question.Environment, err = e.session.environment(); err != nil {
		return question, err
	}
	question.Conduit.Internal = e.internal
	if question.Conduit.Kind, err = policy.ParseConduitKind(e.kind); err != nil {
		return question, usage("--kind: %v", err)
	}
	question.To = policy.Conduit{Name: e.toName, Type: e.conduit.Type, Internal: e.internal}
	if question.To.Kind, err = policy.ParseConduitKind(e.to); err != nil {
		return question, usage("--to: %v", err)
	}
	if e.content == "" {
		return question, nil
	}
	if question.Operation == policytest.Read {
		return question, usage("--content is what is written; give --operation update or derive")
	}
	written, err := factsOf([]string{e.content})
	question.Environment.Update = &policy.Update{Facts: written, NewLength: e.length}
	return question, err
}

func (p *program) answer(question policytest.Question) error {
	decision := question.Decide()
	result := evaluated{Allowed: decision.Allowed, Operation: string(question.Operation),
		Policy: question.Conduit.Policy.String(), Conduit: question.Conduit.Name, Sentence: decision.Sentence,
		Derivation: decision.Derivation, Conditions: conditionTexts(decision.Conditions)}
	if decision.Allowed {
		result.Sentence = fmt.Sprintf("%s may %s it (%s)", either(question.Environment.Session.Principal, "anybody"),
			question.Operation, result.Policy)
		if question.Operation == policytest.Derive {
			result.Sentence = fmt.Sprintf("data that derive from it may flow there (%s)", result.Policy)
		}
	}
	if decision.Remedy != nil {
		verb := "remove"
		if decision.Remedy.Add {
			verb = "add"
		}
		result.Remedy = fmt.Sprintf("%s %q says %s%s", verb, decision.Remedy.Fact.Conduit, decision.Remedy.Fact.Relation,
			policy.NewTuple(decision.Remedy.Fact.Arguments...))
	}
	if err := p.print(result, func(w io.Writer) { printEvaluated(w, result) }); err != nil {
		return err
	}
	if !result.Allowed {
		return errNo
	}
	return nil
}

func printEvaluated(w io.Writer, e evaluated) {
	answer := "denied"
	if e.Allowed {
		answer = "allowed"
	}
	fmt.Fprintf(w, "%s: %s\n\n%s", answer, printable(e.Sentence), e.Derivation)
	if e.Remedy != "" {
		fmt.Fprintf(w, "\nit would be allowed with this change: %s\n", printable(e.Remedy))
	}
	if len(e.Conditions) > 0 {
		fmt.Fprintln(w, "\nthis holds as long as:")
	}
	for _, condition := range e.Conditions {
		fmt.Fprintf(w, "  %s\n", printable(condition))
	}
}
