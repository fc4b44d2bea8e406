// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

// otherBundle keeps public documents from everybody, gives private ones another set,
// and has other facts.
func otherBundle(hash string) Bundle {
	b := testBundle(hash)
	b.Policies[0].Text = `policy public { read :- sKeyIs("nobody"). }`
	b.Rules[1].Set = "p/letters"
	b.Facts = []policy.Fact{fact("blacklist/de", "blocked", "/corpus/public/1")}
	return b
}

// stored is everything that the database holds, readable.
func stored(t *testing.T, c *Catalog) string {
	t.Helper()
	var out bytes.Buffer
	s := c.State()
	bundle := s.Bundle()
	fmt.Fprintf(&out, "%d %s %q %d conduits\n", bundle.Version, bundle.Hash, bundle.Label, s.Conduits())
	for _, f := range all(s) {
		fmt.Fprintln(&out, f)
	}
	for id := uint32(1); id <= s.Conduits(); id++ {
		name, _ := s.Name(id)
		class := s.Class(s.ClassOf(id))
		if class.Class == nil {
			fmt.Fprintf(&out, "%s: no class\n", name)
			continue
		}
		fmt.Fprintf(&out, "%s: %s %s %v, one of %d\n", name, class.Set, class.Policy.ID(), class.Mentions,
			class.Members)
	}
	return out.String()
}

// A shadow is the result of an apply, and has no effect: not on the state, not on the
// file, not after it is opened again.
func TestShadowLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	register(t, c, "/corpus/public/1", "/corpus/public/2", "/corpus/private/alice/1", "/corpus/named/1")
	before, text := c.State(), stored(t, c)
	file, err := os.ReadFile(filepath.Join(dir, "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := c.Shadow(otherBundle("2"))
	if err != nil {
		t.Fatal(err)
	}
	if c.State() != before || stored(t, c) != text {
		t.Errorf("the state has changed:\n%s", cmp.Diff(text, stored(t, c)))
	}
	if again, err := os.ReadFile(filepath.Join(dir, "catalog.db")); err != nil || !bytes.Equal(file, again) {
		t.Errorf("the file has changed (%v)", err)
	}
	if shadow.Before != before || shadow.After.BundleHash() != "2" {
		t.Errorf("the shadow is of %s and leads to %s", shadow.Before.BundleHash(), shadow.After.BundleHash())
	}
	applied, err := c.Apply(otherBundle("2"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(applied.Moved, shadow.Moved); diff != "" {
		t.Errorf("moves of the apply, and of its shadow: %s", diff)
	}
	for id := uint32(1); id <= 4; id++ {
		real, shown := applied.After.Class(applied.After.ClassOf(id)), shadow.After.Class(shadow.After.ClassOf(id))
		if real.Number != shown.Number || real.Members != shown.Members || real.Policy.ID() != shown.Policy.ID() ||
			real.Set != shown.Set {
			t.Errorf("conduit %d: class %+v, in the shadow %+v", id, real, shown)
		}
	}
}

// Reverting restores what was there, facts that were changed since they came with the
// bundle included, and lasts.
func TestRevertRestores(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	register(t, c, "/corpus/public/1", "/corpus/private/alice/1")
	// In addition, a fact of the bundle is removed, and one that the next bundle has is
	// added.
	if _, err := c.AtOnce().ChangeFacts(testBundle("1").Facts,
		[]policy.Fact{fact("blacklist/de", "blocked", "/corpus/public/1"), fact("x", "y", "z")}); err != nil {
		t.Fatal(err)
	}
	before := stored(t, c)
	applied, err := c.Apply(otherBundle("2"))
	if err != nil {
		t.Fatal(err)
	}
	if stored(t, c) == before {
		t.Fatal("the bundle changed nothing")
	}
	if _, err := c.Revert(applied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, stored(t, c)); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Revert(applied); err == nil {
		t.Error("it was reverted twice")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, stored(t, open(t, dir))); diff != "" {
		t.Errorf("after opening again: %s", diff)
	}
}

func TestLabelIsKeptAndNoContent(t *testing.T) {
	c := opened(t)
	labelled := testBundle("1")
	labelled.Label = "release-7"
	before := c.State().FactsVersion()
	change, err := c.Apply(labelled)
	if err != nil || change.Bundle || c.State().FactsVersion() != before {
		t.Errorf("a label counts as another bundle: %+v, %v", change, err)
	}
	if got := c.State().Bundle(); got.Label != "release-7" || got.Version != 1 {
		t.Errorf("label %q, version %d", got.Label, got.Version)
	}
}

func TestModes(t *testing.T) {
	b := testBundle("1")
	b.Policies[0].Mode, b.Policies[1].Mode = Audit, Enforce
	c := open(t, t.TempDir())
	if _, err := c.Apply(b); err != nil {
		t.Fatal(err)
	}
	modeOf := func(name string) Mode {
		bound, err := c.State().Bind(Reference{Policy: name, Arguments: map[string]string{"owner": "a"}})
		if err != nil {
			bound, err = c.State().Bind(Reference{Policy: name})
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.State().ModeOf(bound)
	}
	if got := []Mode{modeOf("public"), modeOf("private"), modeOf("named")}; !slices.Equal(got,
		[]Mode{Audit, Enforce, Enforce}) {
		t.Errorf("modes %v", got)
	}
	if c.State().Waive() == nil || opened(t).State().Waive() != nil {
		t.Error("what is waived is not what is in mode Audit")
	}
	for name, change := range map[string]func(*Bundle){
		"is unknown":      func(b *Bundle) { b.Policies[0].Mode = "audit" },
		"name of its own": func(b *Bundle) { b.Policies[1].File, b.Policies[1].Mode = b.Policies[0].File, Warn },
	} {
		bad := testBundle("2")
		change(&bad)
		if _, err := c.Apply(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want an error that says %q", err, name)
		}
	}
}

// swapForever changes the bundle back and forth, sometimes reverting, and says so after
// each step.
func swapForever(root string) {
	c, err := Open(filepath.Join(root, "state"))
	if err == nil {
		_, err = c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
	}
	for i := 0; err == nil; i++ {
		next := testBundle("1")
		if c.State().BundleHash() == "1" {
			next = otherBundle("2")
		}
		var applied *Change
		if applied, err = c.Apply(next); err == nil && i%3 == 2 {
			fmt.Println(i)
			_, err = c.Revert(applied)
		}
		fmt.Println(i)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A monitor that is killed while it changes the bundle comes up with the old one or the
// new one whole: policies, facts, classes and links.
func TestKillLeavesAWholeBundle(t *testing.T) {
	root := t.TempDir()
	prepareDocuments(t, root, 50)
	content := func(c *Catalog) string { _, rest, _ := strings.Cut(stored(t, c), "\n"); return rest }
	whole := map[string]string{}
	c := open(t, filepath.Join(root, "state"))
	for _, b := range []Bundle{otherBundle("2"), testBundle("1")} {
		if _, err := c.Apply(b); err != nil {
			t.Fatal(err)
		}
		whole[b.Hash] = content(c)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for round := range 8 {
		command := child(t, "swap", root)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		said := 0
		for lines := bufio.NewScanner(output); lines.Scan(); said++ {
			if said == 5+round*3 {
				_ = command.Process.Signal(syscall.SIGKILL)
			}
		}
		_ = command.Wait()
		if said < 5 {
			t.Fatalf("the child made only %d steps", said)
		}
		c, err := Open(filepath.Join(root, "state"))
		if err != nil {
			t.Fatal(err)
		}
		hash := c.State().BundleHash()
		found[hash]++
		if diff := cmp.Diff(whole[hash], content(c)); diff != "" {
			t.Errorf("round %d, bundle %s: %s", round, hash, diff)
		}
		v, err := c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		checkView(t, v)
		if err := errors.Join(v.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("found in force: %v", found)
}
