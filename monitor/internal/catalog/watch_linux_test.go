// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fileSystems are those on which documents are watched. Each returns a directory.
var fileSystems = map[string]func(t *testing.T) string{
	"here":    func(t *testing.T) string { return t.TempDir() },
	"tmpfs":   mountedTmpfs,
	"overlay": mountedOverlay,
}

func mountedTmpfs(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	mount(t, "tmpfs", directory, "tmpfs", "")
	return directory
}

func mountedOverlay(t *testing.T) string {
	t.Helper()
	below := mountedTmpfs(t)
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(below, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	directory := t.TempDir()
	mount(t, "overlay", directory, "overlay", fmt.Sprintf("lowerdir=%s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work",
		below))
	return directory
}

func mount(t *testing.T, source, target, kind, options string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, 0, options); err != nil {
		t.Skipf("cannot mount %s: %v", kind, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// watched is a view whose documents are watched, in which alice's are alone in a folder.
type watched struct {
	t        *testing.T
	catalog  *Catalog
	view     *View
	data     string
	written  bool // by tasks
	withheld chan Withheld
}

const (
	aliceFirst  = "/corpus/private/alice/1"
	aliceSecond = "/corpus/private/alice/2"
	sentinel    = "/corpus/public/sentinel"
)

func newWatched(t *testing.T, root string, written bool) *watched {
	t.Helper()
	w := &watched{t: t, data: filepath.Join(root, "data"), written: written, withheld: make(chan Withheld, 100)}
	w.catalog, w.view = viewedIn(t, root, aliceFirst, aliceSecond, sentinel)
	w.must(w.view.Watch(Watch{
		Written:  func(string) bool { return w.written },
		Withheld: func(one Withheld) { w.withheld <- one },
		Failed:   func(err error) { t.Error(err) },
	}))
	_, err := w.view.Verify(t.Context(), nil)
	w.must(err)
	checkView(t, w.view)
	return w
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) path(name string) string { return filepath.Join(w.data, name) }

func (w *watched) isLinked(name string) bool {
	w.t.Helper()
	id, known := w.catalog.idOf(name)
	if !known {
		w.t.Fatalf("%s is not registered", name)
	}
	_, err := os.Stat(filepath.Join(w.view.path, linkPath(w.catalog.State().ClassOf(id), id)))
	return err == nil
}

// until returns what is withheld before a document that is removed now.
func (w *watched) until(last string) map[string]string {
	w.t.Helper()
	w.must(os.Remove(w.path(last)))
	reasons := map[string]string{}
	for {
		select {
		case one := <-w.withheld:
			if one.Name == last {
				return reasons
			}
			reasons[one.Name] = one.Reason
		case <-time.After(30 * time.Second):
			w.t.Fatalf("%s was removed, and is in the view", last)
		}
	}
}

// Documents that are removed, replaced or changed leave the view; others stay.
func TestWatch(t *testing.T) {
	tests := map[string]struct {
		do      func(w *watched) error
		written bool
		want    string // reason for which alice's first document is withheld; "" if it is not
	}{
		"nothing": {do: func(*watched) error { return nil }},
		"removed": {do: func(w *watched) error { return os.Remove(w.path(aliceFirst)) }, want: "removed"},
		"moved": {do: func(w *watched) error {
			return os.Rename(w.path(aliceFirst), w.path(aliceFirst)+"x")
		}, want: "removed"},
		"replaced": {do: func(w *watched) error {
			w.must(os.WriteFile(w.path("new"), []byte("other"), 0o600))
			return os.Rename(w.path("new"), w.path(aliceFirst))
		}, want: "replaced"},
		"exchanged": {do: func(w *watched) error {
			w.must(os.WriteFile(w.path("new"), []byte("other"), 0o600))
			return unix.Renameat2(unix.AT_FDCWD, w.path("new"), unix.AT_FDCWD, w.path(aliceFirst), unix.RENAME_EXCHANGE)
		}, want: "replaced"},
		"replaced by a task": {written: true, do: func(w *watched) error {
			w.must(os.WriteFile(w.path("new"), []byte("other"), 0o600))
			return os.Rename(w.path("new"), w.path(aliceFirst))
		}, want: "replaced"},
		"changed": {do: func(w *watched) error {
			return os.WriteFile(w.path(aliceFirst), []byte("other"), 0o600)
		}, want: "changed"},
		"truncated": {do: func(w *watched) error {
			return os.Truncate(w.path(aliceFirst), 0)
		}, want: "changed"},
		"changed by a task": {written: true, do: func(w *watched) error {
			return os.WriteFile(w.path(aliceFirst), []byte("other"), 0o600)
		}},
		"read": {do: func(w *watched) error {
			_, err := os.ReadFile(w.path(aliceFirst))
			return err
		}},
		"another mode": {do: func(w *watched) error { return os.Chmod(w.path(aliceFirst), 0o640) }},
		"another document": {do: func(w *watched) error {
			return os.WriteFile(w.path("/corpus/private/alice/3"), []byte("new"), 0o600)
		}},
		"directory moved": {do: func(w *watched) error {
			return os.Rename(w.path("corpus/private"), w.path("private"))
		}, want: "removed"},
		"directory moved outside": {do: func(w *watched) error {
			return os.Rename(w.path("corpus/private"), w.path("../private"))
		}, want: "removed"},
		"directory there and back": {do: func(w *watched) error {
			w.must(os.Rename(w.path("corpus/private/alice"), w.path("corpus/private/bob")))
			w.must(os.Rename(w.path("corpus/private/bob"), w.path("corpus/private/alice")))
			return os.Remove(w.path(aliceFirst))
		}, want: "removed"},
	}
	for system, directory := range fileSystems {
		for name, test := range tests {
			t.Run(system+"/"+name, func(t *testing.T) {
				w := newWatched(t, directory(t), test.written)
				w.must(test.do(w))
				reasons := w.until(sentinel)
				if reasons[aliceFirst] != test.want || w.isLinked(aliceFirst) != (test.want == "") {
					t.Errorf("withheld: %v, linked: %v; want %q", reasons, w.isLinked(aliceFirst), test.want)
				}
				if _, err := w.view.Verify(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				checkView(t, w.view) // catalogued again
			})
		}
	}
}
