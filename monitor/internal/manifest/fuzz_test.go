// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"bytes"
	"testing"
)

// FuzzManifests reads any text: no panic, every finding says what is wrong, and what is accepted has one
// form that is read again.
func FuzzManifests(f *testing.F) {
	f.Add([]byte(valid(f)))
	f.Add([]byte(policyObject("a", `policy a includes b-c("x") { }`) + policyObject("b-c", `policy b-c(o) { read :- sKeyIs(o). }`)))
	f.Add([]byte(policyObject("a", `policy a { read :- sKeyIs(K), "friends/alice" says friend(K, _). }`) + factSource("s", friendSource)))
	f.Add([]byte(using(`{name: library/friends, arguments: {owner: "{owner}"}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := Parse(Source{Name: "f", Text: string(text)}).Report()
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range append(report.Errors, report.Warnings...) {
			if one.Message == "" || one.Code == "" {
				t.Fatalf("%+v", one)
			}
		}
		if report.Bundle == nil {
			return
		}
		again, err := Restore(report.Bundle.Canonical())
		if err != nil || !bytes.Equal(again.Canonical(), report.Bundle.Canonical()) {
			t.Fatalf("what is stored is not read again: %v", err)
		}
	})
}
