// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"shai.dev/monitor/policy"
)

// wholeCatalog returns the file of a catalog with everything in it that there can be.
func wholeCatalog(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	c := open(t, dir)
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	var names []string
	var facts []policy.Fact
	for i := range 300 {
		names = append(names, fmt.Sprintf("/corpus/public/%d", i))
		facts = append(facts, fact(fmt.Sprintf("friends/%d", i), "friend", fmt.Sprintf("bob%d", i),
			strings.Repeat("x", i)), factAt(int64(40*i), "log", "access", fmt.Sprintf("bob%d", i)))
	}
	if _, _, err := c.Register(names); err != nil {
		t.Fatal(err)
	}
	if _, err := addFacts(c, facts...); err != nil {
		t.Fatal(err)
	}
	if _, err := removeFacts(c, facts[14], facts[400]); err != nil {
		t.Fatal(err)
	}
	err := c.AddPredictions(Prediction{Task: "worker", Parameters: map[string]string{"user": "alice"}})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, databaseName)
}

// contents reads every record of a file that is whole.
func contents(t *testing.T, file string) string {
	t.Helper()
	database, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	var all strings.Builder
	err = database.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error { return writeRecords(&all, name, bucket) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func writeRecords(out io.Writer, name []byte, bucket *bbolt.Bucket) error {
	return bucket.ForEach(func(key, value []byte) error {
		if value == nil {
			return writeRecords(out, append(name, key...), bucket.Bucket(key))
		}
		_, err := fmt.Fprintf(out, "%q %q %q\n", name, key, value)
		return err
	})
}

// damages are the ways in which a test spoils a file.
func damages(t *testing.T, whole []byte) map[string][]byte {
	t.Helper()
	page := os.Getpagesize()
	all := map[string][]byte{"empty": {}, "one byte": whole[:1], "half a page": whole[:page/2],
		"no pages": make([]byte, len(whole))}
	for size := page; size < len(whole); size += page {
		all[fmt.Sprintf("%d pages of %d", size/page, len(whole)/page)] = whole[:size]
		all[fmt.Sprintf("page %d is zero", size/page)] = slices.Concat(whole[:size], make([]byte, page), whole[size+page:])
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	flips := 120
	if testing.Short() {
		flips = 20
	}
	for range flips {
		at, by := random.IntN(len(whole)), byte(1+random.IntN(255))
		if random.IntN(2) == 0 { // headers of pages and of their elements
			at = at/page*page + random.IntN(64)
		}
		flipped := bytes.Clone(whole)
		flipped[at] ^= by
		all[fmt.Sprintf("byte %d (%d in its page) changed by %#x", at, at%page, by)] = flipped
	}
	return all
}

// Whatever is damaged, a check finds it, or else it changed nothing that is in force.
func TestDamageIsFound(t *testing.T) {
	file := wholeCatalog(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, file)
	want, err := checkFile(t.Context(), file)
	if err != nil || want.Conduits != 300 || want.Version != 1 || want.Facts < 298 {
		t.Fatalf("the whole catalog: %+v, %v", want, err)
	}
	var group sync.WaitGroup
	found, atOnce := make(chan bool, 1<<10), make(chan struct{}, 4)
	dir := t.TempDir()
	for name, content := range damages(t, whole) {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			got, err := checkFile(t.Context(), path)
			found <- err != nil
			switch {
			case err == nil && got != want:
				t.Errorf("%s: not found, and %+v instead of %+v", name, got, want)
			case err == nil:
				if contents(t, path) != before {
					t.Errorf("%s: not found, and the records are others", name)
				}
			case !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path):
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	group.Wait()
	close(found)
	counts := map[bool]int{}
	for one := range found {
		counts[one]++
	}
	t.Logf("%d damages were found, %d changed nothing", counts[true], counts[false])
}

// A bucket's size that is wrong is found on every page, whether or not the database happens to
// read as much.
func TestDamagedSizesAreFound(t *testing.T) {
	file := wholeCatalog(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range sizesOfBuckets(t, file, whole) {
		for i, by := range []byte{1, 0x10, 0xa5, 0x7f} { // of each byte of the size
			damaged := bytes.Clone(whole)
			damaged[at+i] ^= by
			path := filepath.Join(t.TempDir(), databaseName)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := checkFile(t.Context(), path); !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d changed by %#x: %v", at+i, by, err)
			}
		}
	}
}

// sizesOfBuckets returns where the root page of a catalog's file has the sizes of buckets.
func sizesOfBuckets(t *testing.T, file string, whole []byte) (found []int) {
	t.Helper()
	database, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	err = database.View(func(tx *bbolt.Tx) error {
		page := int(tx.Cursor().Bucket().Root()) * database.Info().PageSize
		for number := range binary.NativeEndian.Uint16(whole[page+pageCount:]) {
			found = append(found, page+pageHeader+int(number)*elementSize+3*4)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d buckets, %v", len(found), err)
	}
	return found
}

// A record whose text alone is another one is damage too.
func TestOtherRecordIsFound(t *testing.T) {
	file := wholeCatalog(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte("bob123"), []byte("bob124"))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), filepath.Dir(file)); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// A catalog that was there and is not is no new one; before the first start there is none.
func TestLostCatalogIsFound(t *testing.T) {
	file := wholeCatalog(t)
	if err := Check(t.Context(), filepath.Dir(file)); err != nil {
		t.Errorf("a whole one: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), filepath.Dir(file)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a lost one: %v", err)
	}
	if err := Check(t.Context(), filepath.Join(t.TempDir(), "new")); err != nil {
		t.Errorf("a new one: %v", err)
	}
}

// An open catalog is not examined, since it changes.
func TestOpenCatalogIsInUse(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	defer c.Close()
	if err := Check(t.Context(), dir); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
}

// A catalog of an earlier schema is brought up to date when it is opened; one of a later
// schema is left as it is.
func TestOtherSchemas(t *testing.T) {
	for found, becomes := range map[string]string{schemaNoDigest: schema, schema: schema,
		schemaOffsets: schemaOffsets, "4": ""} {
		file := wholeCatalog(t)
		database, err := bbolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = database.Update(func(tx *bbolt.Tx) error {
			l := openLedger(tx)
			err := errors.Join(l.bucket(bucketMeta).Put(keySchema, []byte(found)), l.close())
			if found == schemaNoDigest {
				err = errors.Join(err, tx.Bucket(bucketMeta).Delete(keyDigest))
			}
			return err
		})
		if err := errors.Join(err, database.Close()); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		if err := Check(t.Context(), dir); err != nil {
			t.Fatalf("schema %s, before: %v", found, err)
		}
		c, err := Open(dir)
		if becomes == "" {
			if err == nil || !strings.Contains(err.Error(), "use the program that wrote it") {
				t.Errorf("schema %s: %v", found, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("schema %s: %v", found, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), dir); err != nil {
			t.Fatalf("schema %s, after: %v", found, err)
		}
		if text := contents(t, file); !strings.Contains(text, fmt.Sprintf(`"meta" "schema" %q`, becomes)) {
			t.Errorf("schema %s does not become %s", found, becomes)
		}
	}
}

// Conduits that a program of another version has classified in its way are classified anew.
func TestConduitsAreClassifiedAnew(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir)
	applied(t, c, testBundle("1"))
	ids := register(t, c, "/corpus/named/1", "/corpus/named/2")
	classes := []uint32{c.State().ClassOf(ids[0]), c.State().ClassOf(ids[1])}
	_, err := c.commit("merge", func(d *draft) error {
		return errors.Join(d.move(ids[1], conduitRecord{class: classes[1], name: "/corpus/named/2"}, classes[0]),
			d.ledger.bucket(bucketMeta).Delete(keyClasses))
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	c = open(t, dir)
	if s := c.State(); s.ClassOf(ids[1]) != classes[1] || s.Class(classes[0]).Members != 1 ||
		c.ClassTable().Entry(ids[1]) != classes[1] {
		t.Errorf("the second is in class %d, in the table %d, want %d", s.ClassOf(ids[1]), c.ClassTable().Entry(ids[1]),
			classes[1])
	}
	if err := errors.Join(c.Close(), Check(t.Context(), dir)); err != nil {
		t.Error(err)
	}
}

// Facts with offsets get the catalog a schema that earlier programs refuse, and others do not.
func TestOffsetsHaveASchema(t *testing.T) {
	c := opened(t)
	for i, add := range []policy.Fact{fact("c", "r"), factAt(7, "c", "r")} {
		if _, err := addFacts(c, add); err != nil {
			t.Fatal(err)
		}
		_ = c.database.View(func(tx *bbolt.Tx) error {
			if got := string(tx.Bucket(bucketMeta).Get(keySchema)); got != []string{schema, schemaOffsets}[i] {
				t.Errorf("after %s the schema is %s", add.String(), got)
			}
			return nil
		})
	}
}
