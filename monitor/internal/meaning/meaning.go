// SPDX-License-Identifier: BSD-2-Clause

// Package meaning says what the manifests of a bundle mean: to the catalog, and to each of the
// pipelines.
package meaning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// meaning is everything in a bundle that decides what a pipeline's tasks and sessions may
// do, except facts. If it stays the same, a change of the bundle does not concern the
// pipeline.
type meaning struct {
	Spec     manifest.PipelineSpec
	Tasks    []manifest.Task
	Policies []policyMeaning // by name
	Foreign  []foreignRule   // of other pipelines, if a policy may ask about them
}

type policyMeaning struct{ Name, Text, Mode string }

// foreignRule is a rule of another pipeline. It matches no conduit of this pipeline (such
// manifests are refused), but a policy may ask which policy any conduit has.
type foreignRule struct {
	Pipeline, Conduit string
	Path              manifest.ConduitPath
}

// Of returns a hash of a pipeline's meaning.
func Of(bundle *manifest.Bundle, resolved *manifest.Resolved) (string, error) {
	m := meaning{Spec: resolved.Pipeline.Spec, Tasks: resolved.Tasks}
	reached, asks := map[string]bool{}, false
	for _, p := range resolved.Policies {
		reached[p.Metadata.Name] = true
		template, err := policy.CompileText(p.Metadata.Name, []byte(p.Spec.Text))
		if err != nil {
			return "", fmt.Errorf("name the meaning of pipeline %s: %w", resolved.Pipeline.Metadata.Name, err)
		}
		asks = asks || template.Dependencies().SpeaksOfConduits()
	}
	for _, p := range bundle.Pipelines() {
		if !asks || p.Metadata.Name == resolved.Pipeline.Metadata.Name {
			continue
		}
		for _, rule := range rulesOf(p) {
			m.Foreign = append(m.Foreign, rule)
			if rule.Path.Policy != nil {
				reached[rule.Path.Policy.Name] = true
			}
			for _, choice := range rule.Path.Choices {
				reached[choice.Policy.Name] = true
			}
		}
	}
	for _, p := range bundle.EnforcedPolicies() {
		if reached[p.Metadata.Name] {
			m.Policies = append(m.Policies, policyMeaning{p.Metadata.Name, p.Spec.Text, p.Spec.Mode})
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("name the meaning of pipeline %s: %w", resolved.Pipeline.Metadata.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func rulesOf(p *manifest.Pipeline) []foreignRule {
	var rules []foreignRule
	for _, conduit := range p.Spec.Conduits {
		for _, path := range conduit.Paths {
			rules = append(rules, foreignRule{p.Metadata.Name, conduit.Name, path})
		}
	}
	return rules
}
