// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Policies of manifests may include each other, and their clauses stand where the file has them.
func TestClausesOfManifestsStandInTheirFile(t *testing.T) {
	directory := t.TempDir()
	file, tests := filepath.Join(directory, "m.yaml"), filepath.Join(directory, "m_test.yaml")
	for name, text := range map[string]string{
		file: `apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: base-of}
spec: {text: 'policy base_of(o) { read :- sKeyIs(o). }'}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: comp}
spec:
  text: |
    policy comp(o) includes base-of(o) {
      update :- sKeyIs(o).
    }
`,
		tests: `policy: m.yaml
arguments: {o: a}
tests: [{name: another one, policy: comp, principal: b, expect: allowed}]
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	suite, err := ReadSuite(tests)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, coverage := suite.Run()
	if len(outcomes) != 1 || !strings.Contains(outcomes[0].Derivation.String(), "["+file+":11:29]") {
		t.Errorf("the derivation of an included clause: %v", outcomes)
	}
	var places [][2]int
	for _, one := range coverage {
		if one.File != file {
			t.Errorf("%+v is not in %s", one, file)
		}
		places = append(places, [2]int{one.Line, one.Column})
	}
	if len(places) != 2 || places[0] != [2]int{11, 29} || places[1] != [2]int{12, 7} {
		t.Errorf("the clauses are at %v", places)
	}
}
