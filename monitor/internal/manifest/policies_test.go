// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// A policy with a value that nobody supplies is refused: in every policy, and on conduits
// that tasks get as a whole. The twin of each, with a known value, is accepted.
const untypedLength = "f:86:63: Pipeline demo: spec.conduits[0].paths[0].policy.name: policy private, line 3, column 28: " +
	"`cCurrLenIs` cannot be enforced in the update rule: the conduit has no type, so the monitor does not read what tasks write to it; " +
	"give the conduit a `type`: then tasks write it through the monitor\n" +
	"f:91:52: Pipeline demo: spec.conduits[1].paths[0].policy.name: policy private, line 3, column 28: " +
	"`cCurrLenIs` cannot be enforced in the update rule: the conduit has no type, so the monitor does not read what tasks write to it; " +
	"give the conduit a `type`: then tasks write it through the monitor"

func TestPoliciesThatCannotBeEnforced(t *testing.T) {
	const directory = "      ingress: true\n      directory: true\n"
	for _, test := range []struct{ name, rule, documents, want string }{
		{"a length", "cCurrLenIs(0)", "", untypedLength},
		{"a length of typed conduits", "cCurrLenIs(0)", "type", ""},
		{"an offset", "each in \"banned\"@_O says user(U) { neq(U, \"eve\") }", "type", "f:86:63: Pipeline demo: spec.conduits[0].paths[0].policy.name: " +
			"policy private, line 3, column 28: an offset (`@`) cannot be enforced in the update rule: only the entries of a conduit of type access-log have a place in it; " +
			"remove what stands after @: then every tuple counts; or name the log itself, by its whole path"},
		{"a name", "cNameIs(N), concat(N, \"/corpus/\", _)", "", ""},
		{"a name in a directory", "cNameIs(N), concat(N, \"/corpus/\", _)", directory,
			"f:87:63: Pipeline demo: spec.conduits[0].paths[0].policy.name: policy private, line 3, column 28: `cNameIs` cannot be enforced in the update rule: " +
				"a directory is given to a task as a whole, so the monitor is not asked about its single files; " +
				"remove `directory: true`: then the monitor decides each open"},
		{"an address for a key", "sIpIs(\"10.0.0.1\")", "",
			"f:91:52: Pipeline demo: spec.conduits[1].paths[0].policy.name: policy private, line 3, column 28: " +
				"`sIpIs` cannot be enforced in the update rule: keys are given to a user and region before they connect, from whatever address; " +
				"use sRegionIs, or protect a file instead of a key"},
		{"a region for a key", "sRegionIs(\"de\")", directory, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(valid(t), "update :- sKeyIs(owner).", "update :- sKeyIs(owner), "+test.rule+".", 1)
			if test.documents == "type" {
				text = strings.Replace(text, "      ingress: true\n", "      type: topics\n", 1)
				text = strings.Replace(text, "      kind: tuple\n", "      kind: tuple\n      type: topics\n", 1)
				text = strings.Replace(text, ", write: [SET]", "", 1)
			} else if test.documents != "" {
				text = strings.Replace(text, "      ingress: true\n", test.documents, 1)
			}
			got := ""
			if err := check(text); err != nil {
				got = err.Error()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
