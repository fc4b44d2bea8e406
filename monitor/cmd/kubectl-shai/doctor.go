// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/shape"
)

// kinds are the kinds of objects that doctor looks at.
var kinds = []string{"jailpools", "pipelines", "policies", "tasks", "factsources", "principals", "offlineanalyses",
	"analysisruns", "taskruns", "benchmarks"}

// alsoServed are kinds whose objects say nothing of what is wrong.
var alsoServed = []string{"policyrevisions", "memberreadings"}

// notRead is the reason of findings about what the user may not do, and so nobody has looked at.
const notRead = "NotRead"

func (p *program) doctorCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong, and say what to do",
		Long: `Check that the API server serves all of Shai's kinds and checks what is applied, and list
every object whose conditions say that something is wrong, or that the operator has not
looked at. docs/operations.md has a row for each reason. The exit code is 1 if something is
wrong. What you may not read, or may not try, is listed as NotRead, and is no reason for that.
To see whether what is applied is checked, a Policy that is wrong is sent as a dry run.`,
		Example: "  kubectl shai doctor\n  kubectl shai doctor -A --output json",
		Args:    cobra.NoArgs,
		RunE:    p.does(func(ctx context.Context, _ []string) error { return p.doctor(ctx, all) }),
	}
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return command
}

// finding is something that is wrong, or that could not be looked at.
type finding struct {
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (p *program) doctor(ctx context.Context, all bool) error {
	findings := append(p.served(ctx), p.checked(ctx)...)
	looked := 0
	for _, kind := range kinds {
		found, err := p.kubectl.list(ctx, kind, all)
		if err != nil {
			findings = append(findings, finding{kind, reasonOf(err, "Failed"), err.Error()})
		}
		looked += len(found)
		for _, one := range found {
			findings = append(findings, wrong(one)...)
		}
	}
	result := struct {
		Objects  int       `json:"objects"`
		Findings []finding `json:"findings"`
	}{looked, findings}
	text := fmt.Sprintf("%d objects, nothing is wrong\n", looked)
	if len(findings) > 0 {
		text = described(findings)
	}
	if err := p.print(result, text); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(one finding) bool { return one.Reason != notRead }) {
		return errSaid
	}
	return nil
}

// reasonOf returns the reason of a finding about a request that has failed.
func reasonOf(err error, otherwise string) string {
	if strings.Contains(err.Error(), "(Forbidden)") {
		return notRead
	}
	return otherwise
}

// described lists findings: a table, and beneath it each message in full.
func described(findings []finding) string {
	rows := [][]string{{"OBJECT", "REASON", "MESSAGE"}}
	for _, one := range findings {
		rows = append(rows, []string{one.Object, one.Reason, one.Message})
	}
	return shape.Table(rows)
}

// served checks that all kinds are served.
func (p *program) served(ctx context.Context) []finding {
	text, err := p.kubectl.run(ctx, "get", "--raw", "/apis/shai.dev/v1alpha1")
	if err != nil {
		return []finding{{"kinds", "NotServed", err.Error() + "; apply them: kubectl apply -k crds"}}
	}
	var listed struct {
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return []finding{{"kinds", "NotServed", err.Error()}}
	}
	var findings []finding
	for _, kind := range slices.Concat(kinds, alsoServed) {
		if !slices.ContainsFunc(listed.Resources, func(r struct {
			Name string `json:"name"`
		}) bool {
			return r.Name == kind
		}) {
			findings = append(findings, finding{kind, "NotServed", "the kind is missing; apply it: kubectl apply -k crds"})
		}
	}
	return findings
}

// unreadable is a Policy that no monitor can read.
const unreadable = `{"apiVersion": "shai.dev/v1alpha1", "kind": "Policy", "metadata": {"generateName": "doctor-"},
"spec": {"text": "no policy"}}`

// checked tries whether what is applied is checked. Nothing is stored.
func (p *program) checked(ctx context.Context) []finding {
	_, err := p.kubectl.give(ctx, []byte(unreadable), "create", "--dry-run=server", "--filename=-")
	switch {
	case err == nil:
		return []finding{{"admission", "NotChecked", "the API server takes a Policy that is wrong: nobody checks what is applied; " +
			"see whether the operator runs, which makes the ValidatingWebhookConfiguration shai.dev"}}
	case strings.Contains(err.Error(), `.shai.dev" denied the request`): // another webhook's refusal says nothing
		return nil
	}
	return []finding{{"admission", reasonOf(err, "NotChecked"), err.Error()}}
}

// fine are reasons with which a condition is False although nothing is wrong.
var fine = []string{"Progressing", "Cancelled", "Superseded", "Suspended", "Provisioning", "Starting", "BundlePending",
	"Updating", "Unused"}

// wrong lists what an object's status says is wrong.
func wrong(one object) []finding {
	name := strings.ToLower(one.Kind) + "/" + one.name()
	if one.Kind != "PolicyRevision" && !one.seen() {
		return []finding{{name, "NotSeen",
			"the operator has not looked at its present spec; see whether it runs: kubectl -n shai-system get pods"}}
	}
	var findings []finding
	for _, c := range one.Status.Conditions {
		said := slices.ContainsFunc(findings, func(f finding) bool { return f.Message == c.Message })
		if c.Status == "False" && !slices.Contains(fine, c.Reason) && !said {
			findings = append(findings, finding{name, c.Type + "=" + c.Reason, c.Message})
		}
	}
	return findings
}
