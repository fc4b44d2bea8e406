// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
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

const sentinel = "/corpus/public/sentinel"

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
		case <-time.After(waiting.Limit):
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

// newFollowing returns a watched view that follows its files.
func newFollowing(t *testing.T, root string) *watched {
	w := newWatched(t, root, false)
	w.view.watch.Withheld = func(Withheld) {}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.view.Follow(ctx, func(names []string) error {
			_, err := w.view.Ingest(names)
			return err
		}, func(err error) { t.Error(err) })
	}()
	t.Cleanup(func() { stop(); <-ended })
	return w
}

// follows waits until a file is the document of its name, or no document has the name.
func (w *watched) follows(name string) {
	w.t.Helper()
	waiting.Until(w.t, "the catalog follows "+name, func() bool {
		var file unix.Stat_t
		exists := unix.Lstat(w.path(name), &file) == nil
		id, known := w.catalog.idOf(name)
		if !exists || !known {
			return exists == known
		}
		var linked unix.Stat_t
		err := unix.Lstat(filepath.Join(w.view.path, linkPath(w.catalog.State().ClassOf(id), id)), &linked)
		return err == nil && linked.Ino == file.Ino
	})
}

// What is reported is followed at once; nothing of it waits for a sweep.
func TestFollow(t *testing.T) {
	fresh, deep := "/corpus/public/fresh", "/corpus/private/dave/a/b/c/1"
	write := func(w *watched, name string) {
		w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
		w.must(os.WriteFile(w.path(name), []byte("text of "+name), 0o600))
	}
	tests := map[string]struct {
		do      func(w *watched)
		names   []string
		renewed bool // the first of names has another number afterwards
	}{
		"new file":      {do: func(w *watched) { write(w, fresh) }, names: []string{fresh}},
		"new directory": {do: func(w *watched) { write(w, deep) }, names: []string{deep}},
		"moved in": {do: func(w *watched) {
			write(w, "/elsewhere")
			w.must(os.Rename(w.path("/elsewhere"), w.path(fresh)))
		}, names: []string{fresh}},
		"tree moved in": {do: func(w *watched) {
			write(w, "/tree/a/1")
			w.must(os.Rename(w.path("/tree"), w.path("/corpus/private/erin")))
		}, names: []string{"/corpus/private/erin/a/1"}},
		"removed": {do: func(w *watched) { w.must(os.Remove(w.path(aliceFirst))) }, names: []string{aliceFirst}},
		"replaced": {do: func(w *watched) {
			write(w, "/elsewhere")
			w.must(os.Rename(w.path("/elsewhere"), w.path(aliceFirst)))
		}, names: []string{aliceFirst}, renewed: true},
		"written to": {do: func(w *watched) { write(w, aliceFirst) }, names: []string{aliceFirst}, renewed: true},
		"tree removed": {do: func(w *watched) { w.must(os.RemoveAll(w.path("/corpus/private/alice"))) },
			names: []string{aliceFirst, aliceSecond}},
		"tree moved": {do: func(w *watched) {
			w.must(os.Rename(w.path("/corpus/private/alice"), w.path("/corpus/private/frank")))
		}, names: []string{aliceFirst, "/corpus/private/frank/1"}},
		"file and directory exchanged": {do: func(w *watched) {
			w.must(os.Mkdir(w.path("/corpus/private/alice/d"), 0o755))
			write(w, "/corpus/private/alice/d/x")
			w.must(unix.Renameat2(unix.AT_FDCWD, w.path("/corpus/private/alice/d"), unix.AT_FDCWD, w.path(aliceFirst),
				unix.RENAME_EXCHANGE))
		}, names: []string{aliceFirst + "/x", "/corpus/private/alice/d"}},
	}
	for system, directory := range fileSystems {
		for name, test := range tests {
			t.Run(system+"/"+name, func(t *testing.T) {
				w := newFollowing(t, directory(t))
				before, _ := w.catalog.idOf(test.names[0])
				test.do(w)
				if test.renewed {
					waiting.Until(t, "it has another number", func() bool {
						now, _ := w.catalog.idOf(test.names[0])
						return now > before
					})
				}
				for _, name := range test.names {
					w.follows(name)
				}
			})
		}
	}
}

// What is not reported is found by a sweep.
func TestSweepFindsWhatIsNotReported(t *testing.T) {
	w := newFollowing(t, t.TempDir())
	linked, made := "/corpus/public/linked", "/corpus/public/made"
	w.must(os.WriteFile(w.path("/outside"), []byte("x"), 0o600))
	w.must(os.Link(w.path("/outside"), w.path(linked)))
	w.must(os.Chmod(w.path("/corpus/public"), 0o755))
	w.must(unix.Mknod(w.path(made), unix.S_IFREG|0o600, 0))
	w.must(os.Truncate(w.path(aliceFirst), 0))
	waiting.Until(t, "the change is noticed", func() bool { return !w.isLinked(aliceFirst) })
	w.view.Sweep()
	for _, name := range []string{linked, made, aliceFirst} {
		w.follows(name)
	}
}

// An uploader who renames directories for ever neither stops the monitor nor hides a file.
func TestFollowEndures(t *testing.T) {
	w := newFollowing(t, t.TempDir())
	done, ended := make(chan struct{}), make(chan struct{})
	a, b := w.path("/corpus/private/alice"), w.path("/corpus/private/bob")
	go func() {
		defer close(ended)
		for {
			for _, move := range [][2]string{{a, b}, {b, a}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Error(err)
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	for n := range 20 {
		name := fmt.Sprint("/corpus/public/during", n)
		w.must(os.WriteFile(w.path(name), []byte("x"), 0o600))
		w.follows(name)
	}
	close(done)
	<-ended
	w.follows(aliceFirst)
	w.follows("/corpus/private/bob/1")
}
