// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/policy"
)

const itsOwner, hiddenText = "{owner}", `policy hidden { update :- sKeyIs("moderator"). }`

// choosingBundle lets owners of documents in /corpus/private choose their publication, and the
// moderator hide anything.
func choosingBundle(hash string) Bundle {
	bundle := testBundle(hash)
	bundle.Policies = append(bundle.Policies, PolicyText{Name: "hidden", File: "hidden.pol", Text: hiddenText})
	bundle.Rules[1].Choices = []Choice{
		{By: itsOwner, Policy: Reference{Policy: "public"}},
		{By: itsOwner, Policy: Reference{"private", map[string]string{"owner": itsOwner}}},
		{By: "moderator", Policy: Reference{Policy: "hidden"}},
	}
	return bundle
}

func newChoosing(t *testing.T) *ingesting {
	t.Helper()
	i := newIngesting(t)
	_, err := i.catalog.Apply(choosingBundle("choices"))
	i.must(err)
	return i
}

func (i *ingesting) item(name string) Item {
	i.Helper()
	item, ok := i.catalog.Item(name)
	if !ok {
		i.Fatalf("%s is no item", name)
	}
	return item
}

var toPublic, toHidden = Reference{Policy: "public"}, Reference{Policy: "hidden"}

func (i *ingesting) choose(name, by string, reference Reference) error {
	_, err := i.catalog.Choose(name, by, reference, i.item(name).Nonce)
	return err
}

// policyOf is the name of a document's policy, as the class has it that its link is in.
func (i *ingesting) policyOf(name string) string {
	i.Helper()
	checkView(i.T, i.view)
	return i.catalog.State().Class(classOf(i, i.catalog.State(), name)).Reference.String()
}

func (i *ingesting) expectPolicy(when, name, want string) {
	i.Helper()
	if got := i.policyOf(name); got != want || i.item(name).Policy.String() != want {
		i.Errorf("%s: %s has %s, and it is said to have %s; want %s", when, name, got, i.item(name).Policy, want)
	}
}

const alices = `private(owner: "alice")`

// Nobody may choose what the bundle does not say.
func TestChoicesAreDeniedByDefault(t *testing.T) {
	i := newChoosing(t)
	bob := Reference{"private", map[string]string{"owner": "bob"}}
	for name, test := range map[string]struct {
		document, by string
		reference    Reference
		want         error
	}{
		"the owner's":               {aliceFirst, "alice", toPublic, nil},
		"the moderator's":           {aliceFirst, "moderator", toHidden, nil},
		"another user's":            {aliceFirst, "bob", toPublic, ErrNotPermitted},
		"nobody's":                  {aliceFirst, "", toPublic, ErrNotPermitted},
		"the moderator's, by owner": {aliceFirst, "alice", toHidden, ErrNotPermitted},
		"for another owner":         {aliceFirst, "alice", bob, ErrNotPermitted},
		"the placeholder itself":    {aliceFirst, itsOwner, toPublic, ErrNotPermitted},
		"a policy that is none":     {aliceFirst, "alice", Reference{}, ErrNotPermitted},
		"a path without choices":    {"/corpus/public/1", "alice", toHidden, ErrNotPermitted},
	} {
		if err := i.choose(test.document, test.by, test.reference); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// A choice is bound to a document as it is: it cannot be made twice, or for another one.
func TestChoicesAreMadeOnce(t *testing.T) {
	i := newChoosing(t)
	first, second := i.item(aliceFirst), i.item(aliceSecond)
	_, err := i.catalog.Choose(aliceFirst, "alice", toPublic, first.Nonce)
	i.must(err)
	for name, nonce := range map[string]string{"used": first.Nonce, "of another document": second.Nonce, "empty": ""} {
		if _, err := i.catalog.Choose(aliceFirst, "alice", toPublic, nonce); !errors.Is(err, ErrOutdated) {
			t.Errorf("a nonce that is %s: %v", name, err)
		}
	}
	before := i.item(aliceFirst).Nonce
	i.replace(aliceFirst)
	_, err = i.view.Ingest([]string{aliceFirst})
	i.must(err)
	if _, err := i.catalog.Choose(aliceFirst, "alice", toPublic, before); !errors.Is(err, ErrOutdated) {
		t.Errorf("a nonce of former content: %v", err)
	}
	if _, err := i.catalog.Choose("/corpus/private/alice/none", "alice", toPublic, ""); !errors.Is(err, ErrOutdated) {
		t.Errorf("a document that is none: %v", err)
	}
}

// A choice moves the link and not the file, and outlives new content, facts, bundles and restarts,
// while the bundle permits it.
func TestChoicesLast(t *testing.T) {
	i := newChoosing(t)
	apply := func(bundle Bundle) {
		t.Helper()
		_, err := i.catalog.Apply(bundle)
		i.must(err)
	}
	i.expectPolicy("at first", aliceFirst, alices)
	number := i.item(aliceFirst).Number
	i.must(i.choose(aliceFirst, "alice", toPublic))
	i.expectPolicy("chosen", aliceFirst, "public()")
	i.expectPolicy("another of hers", aliceSecond, alices)
	if item := i.item(aliceFirst); item.Number != number || item.By != "alice" {
		t.Errorf("%+v", item)
	}
	i.replace(aliceFirst)
	_, err := i.view.Ingest([]string{aliceFirst})
	i.must(err)
	i.expectPolicy("new content", aliceFirst, "public()")
	_, err = addFacts(i.catalog, fact("blacklist/de", "blocked", aliceFirst))
	i.must(err)
	i.expectPolicy("a fact about it", aliceFirst, "public()")

	without := choosingBundle("without")
	without.Rules[1].Choices = without.Rules[1].Choices[1:]
	apply(without)
	i.expectPolicy("no longer permitted", aliceFirst, alices)
	apply(choosingBundle("again"))
	i.expectPolicy("permitted again", aliceFirst, "public()")

	i.must(os.Remove(i.path(aliceFirst)))
	_, err = i.view.Ingest([]string{aliceFirst})
	i.must(err)
	i.write(aliceFirst, "again")
	if conduit, _ := i.catalog.State().ConduitNamed(aliceFirst); conduit.Policy.String() != "public" {
		t.Errorf("a name that is not registered has %s", conduit.Policy)
	}
	_, err = i.view.Ingest([]string{aliceFirst})
	i.must(err)
	i.expectPolicy("removed and there again", aliceFirst, "public()")
	i.must(i.choose(aliceFirst, "moderator", toHidden))
	i.expectPolicy("hidden", aliceFirst, "hidden()")
	i.checkRestart()
}

// A bundle that is reverted leaves the choices as they were.
func TestRevertLeavesChoices(t *testing.T) {
	i := newChoosing(t)
	i.must(i.choose(aliceFirst, "alice", toPublic))
	change, err := i.catalog.Apply(testBundle("without"))
	i.must(err)
	i.expectPolicy("without choices", aliceFirst, alices)
	_, err = i.catalog.Revert(change)
	i.must(err)
	i.expectPolicy("reverted", aliceFirst, "public()")
}

// Two catalogs with the same content take no choices of one another's.
func TestNoncesAreOfOneCatalog(t *testing.T) {
	one, other := newChoosing(t), newChoosing(t)
	if a, b := one.item(aliceFirst), other.item(aliceFirst); a.Nonce == b.Nonce || a.Number != b.Number {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestChoicesAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(rule *Rule)
		want   string
	}{
		"unknown policy": {func(r *Rule) { r.Choices[0].Policy.Policy = "none" }, `policy "none" of a choice does not exist`},
		"no argument":    {func(r *Rule) { r.Choices[1].Policy.Arguments = nil }, "owner"},
		"unknown hole":   {func(r *Rule) { r.Choices[0].By = "{user}" }, "refers to a name that the pattern does not have"},
		"not ingress":    {func(r *Rule) { r.Ingress = false }, "only single files of ingress conduits have choices"},
		"directory":      {func(r *Rule) { r.Directory = true }, "only single files of ingress conduits have choices"},
		"not a file":     {func(r *Rule) { r.Kind = policy.TupleConduit }, "only single files of ingress conduits have choices"},
	} {
		bundle := choosingBundle("x")
		test.change(&bundle.Rules[1])
		if _, err := Compile(bundle); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// A choice moves the link by renaming it: nothing is linked anew, and no other name of the file is
// needed.
func TestAChoiceMovesTheLink(t *testing.T) {
	i := newChoosing(t)
	class := classOf(t, i.catalog.State(), aliceFirst)
	id := i.item(aliceFirst).Number
	before, err := os.Stat(filepath.Join(i.view.path, linkPath(class, id)))
	i.must(err)
	i.must(os.Rename(i.path(aliceFirst), i.path("/away"))) // the view has the only link that is left
	i.must(i.choose(aliceFirst, "alice", toPublic))
	after, err := os.Stat(filepath.Join(i.view.path, linkPath(i.catalog.State().ClassOf(id), id)))
	i.must(err)
	if _, err := os.Stat(filepath.Join(i.view.path, linkPath(class, id))); err == nil || !os.SameFile(before, after) {
		t.Error("the link has not moved")
	}
}
