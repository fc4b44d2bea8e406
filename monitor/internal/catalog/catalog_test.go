// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

func TestRegisterAndClasses(t *testing.T) {
	c := opened(t)
	ids := register(t, c, "/corpus/public/1", "/corpus/public/2", "/elsewhere/x", "/corpus/private/alice/1",
		"/corpus/private/bob/1", "/corpus/public/1")
	if want := []uint32{1, 2, 0, 3, 4, 1}; !slices.Equal(ids, want) {
		t.Fatalf("numbers %v, want %v", ids, want)
	}
	s := c.State()
	if classOf(t, s, "/corpus/public/1") != classOf(t, s, "/corpus/public/2") {
		t.Error("two public documents are in two classes")
	}
	alice, bob := classOf(t, s, "/corpus/private/alice/1"), classOf(t, s, "/corpus/private/bob/1")
	if alice == bob || alice == 0 {
		t.Errorf("classes of alice and bob: %d, %d", alice, bob)
	}
	if got := s.ClassesWith("p/documents", "private", []string{"alice"}); !slices.Equal(got, []uint32{alice}) {
		t.Errorf("private(alice): %v, want %d", got, alice)
	}
	if info := s.Class(alice); info.Members != 1 || info.Representative != 3 ||
		info.Policy.String() != `private(owner: "alice")` {
		t.Errorf("class of alice: %+v", info)
	}
	if _, ok := s.ConduitByName("/elsewhere/x"); ok {
		t.Error("a conduit without a policy is known")
	}
	if conduit, ok := s.ConduitByID(3); !ok || conduit.Name != "/corpus/private/alice/1" ||
		conduit.Kind != policy.FileConduit {
		t.Errorf("conduit 3: %+v, %v", conduit, ok)
	}
	if conduit, ok := s.ConduitNamed("/corpus/private/carol/9"); !ok || conduit.ID != 0 || conduit.Policy == nil {
		t.Errorf("an unregistered document: %+v, %v", conduit, ok)
	}
}

// Classes that one change makes are listed in ascending order, as those of several changes are.
func TestClassesAreListedInOrder(t *testing.T) {
	c := opened(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("/corpus/private/%d/1", i))
	}
	register(t, c, names...)
	if classes := c.State().ClassesOf("p/documents"); !slices.IsSorted(classes) || len(classes) < len(names) {
		t.Errorf("classes %v", classes)
	}
}

func TestNameDependentPoliciesShareNoClass(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/named/1", "/corpus/named/2")
	if s := c.State(); classOf(t, s, "/corpus/named/1") == classOf(t, s, "/corpus/named/2") {
		t.Error("a policy that looks at the name in its own way has one class for two names")
	}
}

func TestApplyIsAllOrNothing(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/public/1")
	before := c.State()
	breaks := map[string]func(*Bundle){
		"syntax":      func(b *Bundle) { b.Policies[0].Text = "policy public { read :- }" },
		"no policy":   func(b *Bundle) { b.Rules[0].Policy.Policy = "pubic" },
		"argument":    func(b *Bundle) { b.Rules[1].Policy.Arguments = nil },
		"hole":        func(b *Bundle) { b.Rules[1].Policy.Arguments = map[string]string{"owner": "{onwer}"} },
		"ambiguity":   func(b *Bundle) { b.Rules[0].Path = "/corpus/{kind}/alice/**" },
		"key":         func(b *Bundle) { b.Principals[0].PublicKey = "00" },
		"fact":        func(b *Bundle) { b.Facts = append(b.Facts, fact("", "r")) },
		"given twice": func(b *Bundle) { b.Policies = append(b.Policies, b.Policies[0]) },
		"not live":    func(b *Bundle) { b.Policies[0].Text = "policy public { read :- cCurrLenIs(0). }" },
	}
	for name, damage := range breaks {
		bundle := testBundle("2")
		damage(&bundle)
		if _, err := c.Apply(bundle); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if c.State() != before {
		t.Error("a refused bundle changed the state")
	}
}

func TestApplyMovesConduitsAndReplacesItsFacts(t *testing.T) {
	c := opened(t)
	register(t, c, "/corpus/public/1", "/corpus/private/alice/1")
	old := classOf(t, c.State(), "/corpus/public/1")
	if _, err := removeFacts(c, fact("regions", "prefix", "127.0.0.0/8", "us")); err != nil {
		t.Fatal(err)
	}
	next := testBundle("2")
	next.Policies[0].Text = `policy public { read :- true. }`
	next.Facts = append(next.Facts, fact("regions", "prefix", "10.0.0.0/8", "de"))
	change, err := c.Apply(next)
	if err != nil {
		t.Fatal(err)
	}
	s := change.After
	if now := classOf(t, s, "/corpus/public/1"); now == old || len(change.Moved) != 1 {
		t.Errorf("class %d, moved %v", now, change.Moved)
	}
	if s.Class(old).Policy != nil || slices.Contains(s.ClassesOf("p/documents"), old) {
		t.Error("the old policy's class is still in use")
	}
	if s.Facts() != 1 {
		t.Errorf("%d facts: what was removed by hand came back, or the new one is missing", s.Facts())
	}
	if s.Bundle().Version != 2 || s.BundleHash() != "2" {
		t.Errorf("bundle %d %s", s.Bundle().Version, s.BundleHash())
	}
	same, err := c.Apply(next)
	if err != nil || same.Bundle || same.After.Bundle().Version != 2 {
		t.Errorf("the same bundle again: %v", err)
	}
	back, err := c.Apply(testBundle("1"))
	if err != nil || classOf(t, back.After, "/corpus/public/1") != old {
		t.Errorf("the old policy does not bring the old class back: %v", err)
	}
}

func TestPrincipalKey(t *testing.T) {
	c := opened(t)
	key := strings.Repeat("cd", 32)
	if _, err := addFacts(c, fact("population", "key", "bob", key), fact("population", "key", "eve", key),
		fact("population", "key", "eve", strings.Repeat("ef", 32)), fact("population", "key", "mal", "x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"alice": strings.Repeat("ab", 32), "bob": key, "eve": "", "mal": "",
		"nobody": ""} {
		got, ok := c.State().PrincipalKey(name)
		if fmt.Sprintf("%x", []byte(got)) != want && ok || ok != (want != "") {
			t.Errorf("%s: %x, %v", name, []byte(got), ok)
		}
	}
}

func TestRestartFindsEverything(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	register(t, c, "/corpus/public/1", "/corpus/public/2", "/corpus/named/1")
	if _, err := addFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1"),
		policy.Fact{Conduit: "c", Relation: "r", Arguments: []policy.Value{policy.Integer(-5), policy.String("")}},
		fact("flag", "up")); err != nil {
		t.Fatal(err)
	}
	if err := c.AddPredictions(Prediction{"worker", map[string]string{"user": "eve"}},
		Prediction{Task: "worker"}); err != nil {
		t.Fatal(err)
	}
	before := dump(c.State())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if diff := cmp.Diff(before, dump(again.State())); diff != "" {
		t.Error(diff)
	}
	predictions, err := again.Predictions()
	if err != nil || len(predictions) != 2 {
		t.Errorf("predictions %v, %v", predictions, err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second open: %v", err)
	}
}
