// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"testing"

	"shai.dev/monitor/internal/policytest"
	"shai.dev/monitor/policy"
)

// The cases beside each policy of the library, which the reference shows, are as it answers.
func TestLibraryCases(t *testing.T) {
	files, err := policytest.Find(libraryTexts)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(files), len(policy.Library()); got != want {
		t.Errorf("%d policies of %d have cases", got, want)
	}
	for _, file := range files {
		suite, err := policytest.ReadSuite(file)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, _ := suite.Run()
		for _, one := range outcomes {
			if !one.Passed {
				t.Errorf("%s:%d: %s: %s: %s", one.File, one.Line, one.Name, one.Wrong, one.Sentence)
			}
		}
	}
}
