// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

// metaPagesCount is how many pages say where everything else is; a change writes one of them,
// after all others.
const metaPagesCount = 2

// crashed is a catalog with a view, and a change that a crash interrupts.
type crashed struct {
	*ingesting
	dir string // the catalog's
}

func newCrashed(t *testing.T) *crashed {
	t.Helper()
	i := newChoosing(t)
	c := &crashed{i, filepath.Dir(i.catalog.database.Path())}
	bundle := choosingBundle("with a log")
	bundle.Rules = append(bundle.Rules, Rule{Set: "p/log", Kind: policy.FileConduit, Path: theLog, Type: "access-log",
		Policy: Reference{Policy: "public"}})
	_, err := i.catalog.Apply(bundle)
	i.must(err)
	return c
}

const theLog = "/log"

func (c *crashed) many(from, count int, form string) (names []string) {
	for n := range count {
		names = append(names, fmt.Sprintf(form, from+n))
	}
	return names
}

func (c *crashed) ingest(names ...string) {
	c.Helper()
	done, err := c.view.Ingest(names)
	c.must(err)
	if len(done.Refused) > 0 || done.Unchanged > 0 {
		c.Fatalf("ingest: %s", done.summary())
	}
}

func (c *crashed) entries(from, count int) (entries []policy.Fact) {
	for n := range count {
		entries = append(entries, factAt(int64(20*(from+n)), theLog, "access", fmt.Sprint("user", from+n), aliceFirst))
	}
	return entries
}

// changesOfEveryKind are what the first function prepares and the second one changes, in one step.
var changesOfEveryKind = map[string]struct{ prepare, change func(c *crashed) }{
	"facts": {
		func(c *crashed) {
			var first []policy.Fact
			for n := range 900 {
				first = append(first, fact("friends/alice", "friend", fmt.Sprint("user", n)))
			}
			_, err := addFacts(c.catalog, first...)
			c.must(err)
		},
		func(c *crashed) {
			var removed, added []policy.Fact
			for n := range 900 {
				removed = append(removed, fact("friends/alice", "friend", fmt.Sprint("user", n)))
				added = append(added, fact("blacklist/de", "blocked", fmt.Sprint("/corpus/public/", n)))
			}
			_, err := c.catalog.AtOnce().ChangeFacts(removed[100:], added)
			c.must(err)
		},
	},
	"documents": {
		func(c *crashed) {
			for _, name := range c.many(0, 40, "/corpus/public/doc-%d") {
				c.write(name, "first")
			}
			c.ingest(c.many(0, 40, "/corpus/public/doc-%d")...)
		},
		func(c *crashed) { // some are new, some have changed, some are gone
			for n, name := range c.many(0, 20, "/corpus/public/doc-%d") {
				if c.replace(name); n%2 == 0 {
					c.must(os.Remove(c.path(name)))
				}
			}
			for _, name := range c.many(40, 20, "/corpus/public/doc-%d") {
				c.write(name, "second")
			}
			c.ingest(append(c.many(0, 20, "/corpus/public/doc-%d"), c.many(40, 20, "/corpus/public/doc-%d")...)...)
		},
	},
	"a choice": {
		func(c *crashed) { c.must(c.choose(aliceSecond, "alice", toPublic)) },
		func(c *crashed) { c.must(c.choose(aliceFirst, "alice", toPublic)) },
	},
	"a choice that is taken back": {
		func(c *crashed) { c.must(c.choose(aliceFirst, "alice", toPublic)) },
		func(c *crashed) {
			c.must(c.choose(aliceFirst, "alice", Reference{"private", map[string]string{"owner": "alice"}}))
		},
	},
	"entries of a log": {
		func(c *crashed) {
			_, err := c.catalog.AtOnce().ChangeLog(nil, c.entries(0, 300))
			c.must(err)
		},
		func(c *crashed) {
			_, err := c.catalog.AtOnce().ChangeLog(c.entries(250, 50), c.entries(300, 300))
			c.must(err)
		},
	},
	"a bundle": {
		func(*crashed) {},
		func(c *crashed) {
			_, err := c.catalog.Apply(otherBundle("2"))
			c.must(err)
		},
	},
}

// A crash before any write of a change, with any of the writes before it on disk or not, leaves
// everything as it was; one after the last leaves it as it is afterwards. The view then follows, from
// what it was before or is afterwards.
func TestCrashAtEveryWrite(t *testing.T) {
	for name, kind := range changesOfEveryKind {
		t.Run(name, func(t *testing.T) {
			c := newCrashed(t)
			kind.prepare(c)
			file, view := filepath.Join(c.dir, databaseName), filepath.Join(filepath.Dir(c.data), "view")
			before, old := stored(t, c.catalog), read(t, file)
			former := copyOfView(t, view)
			kind.change(c)
			after, whole := stored(t, c.catalog), read(t, file)
			if before == after {
				t.Fatal("nothing has changed")
			}
			c.must(c.view.Close())
			c.must(c.catalog.Close())
			images := crashImages(t, old, whole)
			for done, image := range images[:len(images)-1] {
				checkImage(t, fmt.Sprintf("%d writes of %d", done, len(images)-1), image, before)
			}
			last := images[len(images)-1]
			checkImage(t, "all writes", last, after)
			checkViewFollows(t, "all writes, and none in the view", last, c.data, former)
			checkViewFollows(t, "all writes, also in the view", last, c.data, view)
		})
	}
}

// crashImages returns the file as a crash may leave it, before each write of a change and after the last.
func crashImages(t *testing.T, old, whole []byte) (images [][]byte) {
	t.Helper()
	page := os.Getpagesize()
	old = append(old, make([]byte, len(whole)-len(old))...) // a file grows before it is written
	var written []int
	for at := 0; at < len(whole); at += page {
		if !bytes.Equal(old[at:at+page], whole[at:at+page]) {
			written = append(written, at)
		}
	}
	last := slices.DeleteFunc(slices.Clone(written), func(at int) bool { return at >= metaPagesCount*page })
	others := written[len(last):]
	if len(last) != 1 || len(others) < 2 {
		t.Fatalf("the change has written pages %v", written)
	}
	seed := rand.Uint64()
	t.Logf("%d writes, seed %d", len(written), seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for done := range len(others) + 1 {
		image := bytes.Clone(old)
		for _, at := range others[:done] {
			if done == len(others) || random.IntN(4) > 0 { // the disk may keep later writes and lose earlier ones
				copy(image[at:at+page], whole[at:at+page])
			}
		}
		images = append(images, image)
	}
	image := bytes.Clone(images[len(images)-1])
	copy(image[last[0]:last[0]+page], whole[last[0]:last[0]+page])
	return append(images, image)
}

// copyOfView links the files of a view to another one, beside it.
func copyOfView(t *testing.T, view string) string {
	t.Helper()
	other := view + "-before"
	err := filepath.Walk(view, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		at := other + strings.TrimPrefix(path, view)
		if info.IsDir() {
			return os.MkdirAll(at, 0o755)
		}
		return os.Link(path, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// checkViewFollows attaches a view to a file as it was found after a crash.
func checkViewFollows(t *testing.T, name string, image []byte, data, view string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseName), image, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := open(t, dir).AttachView(data, view)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer v.Close()
	if _, err := v.Verify(t.Context(), nil); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	checkView(t, v)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// checkImage opens a file as it was found after a crash.
func checkImage(t *testing.T, name string, image []byte, want string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseName), image, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := examine(filepath.Join(dir, databaseName)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, stored(t, c)); diff != "" {
		t.Errorf("%s: %.2000s", name, diff)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
