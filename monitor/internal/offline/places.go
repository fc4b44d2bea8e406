// SPDX-License-Identifier: BSD-2-Clause

package offline

import (
	"strconv"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
)

// textsOf returns by name the policies that are enforced as they stand in the manifests: not those with
// the clauses of others in place, and not those of the standard library.
func textsOf(set *manifest.Set, bundle *manifest.Bundle) map[string]manifest.PolicyText {
	enforced := map[string]string{}
	for _, one := range bundle.EnforcedPolicies() {
		enforced[one.Metadata.Name] = one.Spec.Text
	}
	texts := map[string]manifest.PolicyText{}
	for _, one := range set.PolicyTexts() {
		if enforced[one.Object] == one.Text {
			texts[one.Object] = one
		}
	}
	return texts
}

// inManifests gives the clauses and literals of a derivation their places in the manifests. A monitor
// has no files, and names the policy in the file's place.
func (p *Project) inManifests(d api.Derivation) api.Derivation {
	d.Source = p.located(d.Source)
	because := d.Because
	d.Because = nil
	for _, child := range because {
		d.Because = append(d.Because, p.inManifests(child))
	}
	return d
}

// located translates "policy:line:column" into "file:line:column", if the policy's text is in a file.
func (p *Project) located(source string) string {
	parts := strings.Split(source, ":")
	if len(parts) != 3 {
		return source
	}
	text, known := p.texts[parts[0]]
	line, lineErr := strconv.Atoi(parts[1])
	column, columnErr := strconv.Atoi(parts[2])
	if !known || lineErr != nil || columnErr != nil {
		return source
	}
	return text.Position(line, column).String()
}
