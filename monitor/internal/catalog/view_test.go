// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// viewed is a catalog with documents and their view.
func viewed(t *testing.T, names ...string) (*Catalog, *View, string) {
	t.Helper()
	root := t.TempDir()
	c, v := viewedIn(t, root, names...)
	return c, v, root
}

// viewedIn makes them in a directory.
func viewedIn(t *testing.T, root string, names ...string) (*Catalog, *View) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(root, "data", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := opened(t)
	v, err := c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	if _, _, err := c.RegisterFiles(context.Background(), filepath.Join(root, "data"), nil); err != nil {
		t.Fatal(err)
	}
	return c, v
}

// checkView compares the view with the catalog, link by link and entry by entry.
func checkView(t *testing.T, v *View) {
	t.Helper()
	s := v.catalog.State()
	want := make(map[string]string)
	for id := uint32(1); id <= s.Conduits(); id++ {
		class := s.ClassOf(id)
		if got := v.catalog.ClassTable().Entry(id); got != class {
			t.Errorf("class table: conduit %d is in %d, want %d", id, got, class)
		}
		name, _ := s.Name(id)
		if _, err := os.Stat(filepath.Join(v.data.Name(), name)); err == nil && class != 0 {
			want[linkPath(class, id)] = name
		}
	}
	found := 0
	err := filepath.Walk(v.path, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		relative, _ := filepath.Rel(v.path, path)
		name, ok := want[relative]
		if !ok {
			t.Errorf("view has %s, which the catalog does not", relative)
			return nil
		}
		found++
		document, err := os.Stat(filepath.Join(v.data.Name(), name))
		if err != nil || !os.SameFile(document, info) {
			t.Errorf("view %s is not %s", relative, name)
		}
		return nil
	})
	if err != nil || found != len(want) {
		t.Errorf("%d links, want %d, %v", found, len(want), err)
	}
}

func TestViewFollowsFacts(t *testing.T) {
	c, v, _ := viewed(t, "/corpus/public/1", "/corpus/public/2", "/corpus/private/alice/1", "/unruled/1")
	checkView(t, v)
	if _, err := addFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1")); err != nil {
		t.Fatal(err)
	}
	checkView(t, v)
	if _, err := removeFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1")); err != nil {
		t.Fatal(err)
	}
	checkView(t, v)
	if repairs, err := v.Verify(context.Background(), nil); err != nil ||
		repairs.Linked+repairs.Removed+repairs.Entries != 0 {
		t.Errorf("nothing was wrong, and yet %+v, %v", repairs, err)
	}
}

func TestVerifyRepairs(t *testing.T) {
	c, v, root := viewed(t, "/corpus/public/1", "/corpus/public/2", "/corpus/public/3", "/corpus/private/alice/1")
	s := c.State()
	public, private := classOf(t, s, "/corpus/public/1"), classOf(t, s, "/corpus/private/alice/1")
	first, _ := s.ID("/corpus/public/1")
	damage := map[string]func() error{
		"link missing": func() error { return os.Remove(filepath.Join(v.path, linkPath(public, first))) },
		"link in two places": func() error {
			return os.Link(filepath.Join(root, "data/corpus/private/alice/1"),
				filepath.Join(v.path, linkPath(public, 999)))
		},
		"private in public": func() error {
			id, _ := s.ID("/corpus/private/alice/1")
			return os.Rename(filepath.Join(v.path, linkPath(private, id)), filepath.Join(v.path, linkPath(public, id)))
		},
		"link to another file": func() error {
			return os.Rename(filepath.Join(v.path, linkPath(public, first)),
				filepath.Join(v.path, linkPath(public, first+1)))
		},
		"document replaced": func() error {
			if err := os.WriteFile(filepath.Join(root, "data/new"), []byte("new"), 0o600); err != nil {
				return err
			}
			return os.Rename(filepath.Join(root, "data/new"), filepath.Join(root, "data/corpus/public/1"))
		},
		"foreign file":   func() error { return os.WriteFile(filepath.Join(v.path, "junk"), nil, 0o600) },
		"foreign number": func() error { return os.MkdirAll(filepath.Join(v.path, "007/0/1"), 0o700) },
		"symbolic link": func() error {
			return os.Symlink("/etc/passwd",
				filepath.Join(v.path, linkPath(public, 998)))
		},
		"class table":     func() error { return damageTable(c, first, private) },
		"whole view gone": func() error { return os.RemoveAll(filepath.Join(v.path, fmt.Sprint(public))) },
	}
	for _, name := range sortedKeys(damage) {
		t.Run(name, func(t *testing.T) {
			if err := damage[name](); err != nil {
				t.Fatal(err)
			}
			repairs, err := v.Verify(context.Background(), nil)
			if err != nil || repairs.Linked+repairs.Removed+repairs.Entries == 0 {
				t.Errorf("%+v, %v", repairs, err)
			}
			checkView(t, v)
		})
	}
}

// damageTable writes in place: cutting the file short would end the process with
// SIGBUS, and only the monitor itself can write it.
func damageTable(c *Catalog, id, class uint32) error {
	file, err := os.OpenFile(c.table.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.LittleEndian.AppendUint32(nil, class), int64(id)*4)
	return errors.Join(err, file.Close())
}

func TestViewRefusesWhatIsNotAFileOfTheData(t *testing.T) {
	c, v, root := viewed(t, "/corpus/public/1", "/secret")
	public := filepath.Join(root, "data/corpus/public")
	for name, make := range map[string]func(string) error{
		"symlink":   func(path string) error { return os.Symlink(filepath.Join(root, "data/secret"), path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		if err := make(filepath.Join(public, name)); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.Register([]string{"/corpus/public/" + name})
		if err == nil {
			t.Errorf("%s was linked", name)
		}
	}
	if err := os.Rename(public, filepath.Join(root, "data/moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "data/moved"), public); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Register([]string{"/corpus/public/2"}); err != nil &&
		!strings.Contains(err.Error(), "/corpus/public") {
		t.Errorf("through a symbolic link: %v", err)
	}
	id, _ := c.State().ID("/corpus/public/2")
	if _, err := os.Stat(filepath.Join(v.path, linkPath(c.State().ClassOf(id), id))); err == nil {
		t.Error("a document was linked through a symbolic link")
	}
}

func TestClassTableIsSeenThroughOldMappings(t *testing.T) {
	c := opened(t)
	file, err := c.ClassTable().File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ids := register(t, c, "/corpus/public/1")
	raw := make([]byte, 4)
	if _, err := file.ReadAt(raw, int64(ids[0])*4); err != nil ||
		binary.LittleEndian.Uint32(raw) != c.State().ClassOf(ids[0]) {
		t.Errorf("entry %v, %v", raw, err)
	}
	if _, err := file.Write([]byte{1}); err == nil {
		t.Error("the file that tasks get can be written")
	}
	if entries := len(c.ClassTable().mapping) / 4; entries < tableAhead {
		t.Errorf("the table has %d entries; mappings must cover conduits to come", entries)
	}
}

// Tasks are other users than the monitor, whose umask may keep everything to itself.
func TestViewCanBeSearched(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	c, v, root := viewed(t, "/corpus/public/1")
	check := func() {
		t.Helper()
		err := filepath.Walk(v.path, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.IsDir() && info.Mode().Perm() != viewMode {
				t.Errorf("%s has mode %o", path, info.Mode().Perm())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	check()
	// So does a view that an earlier monitor has made.
	class := classOf(t, c.State(), "/corpus/public/1")
	if err := os.Chmod(v.ClassDirectory(class), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "data/corpus/public/2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Register([]string{"/corpus/public/2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := v.EnsureClassDirectories([]uint32{class}); err != nil {
		t.Fatal(err)
	}
	check()
}
