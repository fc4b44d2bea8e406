// SPDX-License-Identifier: BSD-2-Clause

package meaning

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

func TestAttributesOfPrincipalsAreFacts(t *testing.T) {
	text := "apiVersion: shai.dev/v1alpha1\nkind: Principal\nmetadata: {name: alice}\nspec:\n  publicKey: \"" +
		"00000000000000000000000000000000000000000000000000000000000000ff\"\n" +
		"  attributes: [{name: team, value: search}, {name: unit, value: ads}]\n"
	bundle, err := manifest.Parse(manifest.Source{Name: "f", Text: text}).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	next, err := ForCatalog(bundle, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, fact := range next.Facts {
		got = append(got, fact.Conduit+" says "+fact.Relation+policy.NewTuple(fact.Arguments...).String())
	}
	want := []string{`principals/alice says attribute("team", "search")`,
		`principals/alice says attribute("unit", "ads")`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
