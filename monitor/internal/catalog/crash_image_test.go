// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

// metaPagesCount is how many pages say where everything else is; a change writes one of them,
// after all others.
const metaPagesCount = 2

// A crash before any write of a change, with any of the writes before it on disk or not, leaves
// the facts as they were; one after the last leaves them as they are afterwards.
func TestCrashAtEveryWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, databaseName)
	c := open(t, dir)
	applied(t, c, testBundle("1"))
	register(t, c, "/corpus/public/1", "/corpus/public/2")
	var first, second []policy.Fact
	for i := range 600 {
		first = append(first, factAt(int64(20*i), "log", "access", fmt.Sprint("user", i), "/corpus/public/1"),
			fact("friends/alice", "friend", fmt.Sprint("user", i)))
		second = append(second, factAt(int64(20*(600+i)), "log", "access", fmt.Sprint("user", i), "/corpus/public/2"),
			fact("blacklist/de", "blocked", fmt.Sprint("/corpus/public/", i)))
	}
	if _, err := addFacts(c, first...); err != nil {
		t.Fatal(err)
	}
	before, old := stored(t, c), read(t, file)
	if _, err := c.AtOnce().ChangeFacts(first[100:700], second); err != nil {
		t.Fatal(err)
	}
	after, whole := stored(t, c), read(t, file)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
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
	if len(last) != 1 || len(others) < 10 {
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
		checkImage(t, fmt.Sprintf("%d writes of %d", done, len(written)), image, before)
		if done == len(others) {
			copy(image[last[0]:last[0]+page], whole[last[0]:last[0]+page])
			checkImage(t, "all writes", image, after)
		}
	}
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
