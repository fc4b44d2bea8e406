// SPDX-License-Identifier: BSD-2-Clause

package meaning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/factsource"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// ForCatalog turns manifests into the catalog's form. It reads fact files beneath the
// data directory. The error about a bad line names the file and the line.
func ForCatalog(bundle *manifest.Bundle, data string) (catalog.Bundle, error) {
	out := catalog.Bundle{Manifest: bundle.Canonical()}
	for _, p := range bundle.EnforcedPolicies() {
		out.Policies = append(out.Policies, catalog.PolicyText{
			Name: p.Metadata.Name, File: p.Metadata.Name, Text: p.Spec.Text, Mode: catalog.Mode(p.Spec.Mode),
		})
	}
	for _, principal := range bundle.Principals() {
		out.Principals = append(out.Principals, catalog.Principal{
			Name: principal.Metadata.Name, PublicKey: principal.Spec.PublicKey, Region: principal.Spec.Region,
		})
		out.Facts = append(out.Facts, attributesOf(principal)...)
	}
	for _, p := range bundle.Pipelines() {
		for _, conduit := range p.Spec.Conduits {
			rules, err := conduitRules(p.Metadata.Name, conduit)
			if err != nil {
				return catalog.Bundle{}, err
			}
			out.Rules = append(out.Rules, rules...)
		}
	}
	for _, source := range bundle.FactSources() {
		facts, err := factsOf(source, data)
		if err != nil {
			return catalog.Bundle{}, fmt.Errorf("FactSource %s: %w", source.Metadata.Name, err)
		}
		out.Facts = append(out.Facts, facts...)
		if source.Spec.Fetched() {
			out.Sources = append(out.Sources, SourceID(source))
		}
	}
	out.Hash = contentHash(bundle.Hash(), out.Facts)
	return out, nil
}

// attributesOf returns a principal's attributes as facts.
func attributesOf(principal *manifest.Principal) []policy.Fact {
	var facts []policy.Fact
	for _, attribute := range principal.Spec.Attributes {
		facts = append(facts, policy.Fact{
			Conduit: manifest.Attributes + principal.Metadata.Name, Relation: "attribute",
			Arguments: []policy.Value{policy.String(attribute.Name), policy.String(attribute.Value)},
		})
	}
	return facts
}

func conduitRules(pipeline string, conduit manifest.Conduit) ([]catalog.Rule, error) {
	kind, err := policy.ParseConduitKind(conduit.Kind)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: conduit %s: %w", pipeline, conduit.Name, err)
	}
	var rules []catalog.Rule
	for _, path := range conduit.Paths {
		rule := catalog.Rule{
			Set: catalog.NameIn(pipeline, conduit.Name), Kind: kind,
			Ingress: conduit.Ingress, Internal: !conduit.Ingress && !conduit.Egress, Directory: conduit.Directory,
			Type: conduit.Type, Path: path.Path,
			Policy: catalog.Reference{Policy: path.Policy.Name, Arguments: path.Policy.Arguments},
		}
		for _, choice := range path.Choices {
			rule.Choices = append(rule.Choices, catalog.Choice{By: choice.By,
				Policy: catalog.Reference{Policy: choice.Policy.Name, Arguments: choice.Policy.Arguments}})
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// contentHash returns a hash of manifests and of the facts in their files, so that a
// changed file means a changed bundle.
func contentHash(manifests string, facts []policy.Fact) string {
	sum := sha256.New()
	sum.Write([]byte(manifests))
	for _, fact := range facts {
		fmt.Fprintf(sum, "%q %q %s\n", fact.Conduit, fact.Relation, policy.NewTuple(fact.Arguments...))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// factsOf reads one source of facts.
func factsOf(source *manifest.FactSource, data string) ([]policy.Fact, error) {
	var facts []policy.Fact
	for _, statement := range source.Spec.Inline {
		facts = factsource.AppendStatement(facts, statement)
	}
	if source.Spec.File == nil {
		return facts, nil
	}
	name := filepath.Join(data, source.Spec.File.Path)
	file, err := openFacts(data, source.Spec.File.Path)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w; make the file, or correct spec.file.path", err)
	}
	defer file.Close()
	return factsource.ReadStatements(file, name, source.Spec.Declared())
}

// openFacts opens a regular file beneath the data directory. Tasks write there, and in
// mode baseline also make links and pipes: the monitor would follow the links with its own
// rights, and wait for a pipe.
func openFacts(data, path string) (*os.File, error) {
	root, err := os.OpenRoot(data)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return plainfile.OpenIn(root, strings.TrimPrefix(path, "/"))
}

// SourceID returns an identifier of a source and the place that its facts come from. If
// the place changes, the source's earlier facts do not count as known.
func SourceID(source *manifest.FactSource) string {
	spec, err := json.Marshal(source.Spec)
	if err != nil {
		bug.Found("a fact source of a bundle cannot be rendered: %v", err)
	}
	sum := sha256.Sum256(spec)
	return source.Metadata.Name + "@" + hex.EncodeToString(sum[:8])
}
