// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// A policy with a value that nobody supplies is refused: in every policy, and on conduits
// that tasks get as a whole. The twin of each, with a known value, is accepted.
func TestPoliciesThatCannotBeEnforced(t *testing.T) {
	const directory = "      ingress: true\n      directory: true\n"
	for _, test := range []struct{ name, rule, documents, want string }{
		{"a length", "cCurrLenIs(0)", "", "f:9:32: Policy private: spec.text: `cCurrLenIs` cannot be enforced in the update rule: " +
			"the monitor does not know how long a conduit is; remove it, and let only a task write that you trust to append: update :- sKeyIs(\"task/NAME\")"},
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
			if test.documents != "" {
				text = strings.Replace(text, "      ingress: true\n", test.documents, 1)
			}
			got := ""
			if err := check(text); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
