// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// ingesting is a view without a watch, with documents of alice.
type ingesting struct {
	*testing.T
	catalog *Catalog
	view    *View
	data    string
}

func newIngesting(t *testing.T) *ingesting {
	t.Helper()
	c, v, root := viewed(t, aliceFirst, aliceSecond, "/corpus/public/1")
	i := &ingesting{T: t, catalog: c, view: v, data: filepath.Join(root, "data")}
	i.must(os.MkdirAll(filepath.Join(root, "elsewhere"), 0o755))
	i.must(os.WriteFile(filepath.Join(root, "elsewhere/secret"), []byte("secret"), 0o600))
	return i
}

func (i *ingesting) must(err error) {
	i.Helper()
	if err != nil {
		i.Fatal(err)
	}
}

func (i *ingesting) path(name string) string { return filepath.Join(i.data, name) }

func (i *ingesting) write(name, text string) {
	i.Helper()
	i.must(os.MkdirAll(filepath.Dir(i.path(name)), 0o755))
	i.must(os.WriteFile(i.path(name), []byte(text), 0o600))
}

// replace puts another file in the place of one.
func (i *ingesting) replace(name string) {
	i.Helper()
	i.write("new", "other")
	i.must(os.Rename(i.path("new"), i.path(name)))
}

// asRoot makes a directory one in which somebody else than the owner of its files may write.
func (i *ingesting) asRoot(uid int, name string) {
	i.Helper()
	if os.Getuid() != 0 {
		i.Skip("only root can give files to other users")
	}
	i.must(os.Chown(i.path(name), uid, -1))
}

// summary is an answer without what differs from run to run.
func (d Ingested) summary() string {
	text := fmt.Sprintf("added %v, renewed %v, removed %v, unchanged %d", d.Added, d.Renewed, d.Removed, d.Unchanged)
	for _, one := range d.Refused {
		text += fmt.Sprintf("; %q: %.40s", one.Name, one.Reason)
	}
	return text
}

func TestIngest(t *testing.T) {
	const fresh, secret = "/corpus/public/new", "../elsewhere/secret"
	tests := map[string]struct {
		do    func(i *ingesting)
		names []string
		want  string
	}{
		"nothing has changed": {names: []string{aliceFirst, "/corpus/public/1"},
			want: "added [], renewed [], removed [], unchanged 2"},
		"new, in a known class": {do: func(i *ingesting) { i.write(fresh, "x") }, names: []string{fresh, fresh},
			want: "added [/corpus/public/new], renewed [], removed [], unchanged 0"},
		"new, in a new class": {do: func(i *ingesting) { i.write("/corpus/private/bob/1", "x") },
			names: []string{"/corpus/private/bob/1"},
			want:  "added [/corpus/private/bob/1], renewed [], removed [], unchanged 0"},
		"replaced": {do: func(i *ingesting) { i.replace(aliceFirst) }, names: []string{aliceFirst},
			want: "added [], renewed [/corpus/private/alice/1], removed [], unchanged 0"},
		"removed": {do: func(i *ingesting) { i.must(os.Remove(i.path(aliceFirst))) }, names: []string{aliceFirst},
			want: "added [], renewed [], removed [/corpus/private/alice/1], unchanged 0"},
		"moved": {do: func(i *ingesting) { i.must(os.Rename(i.path(aliceFirst), i.path(fresh))) },
			names: []string{aliceFirst, fresh},
			want:  "added [/corpus/public/new], renewed [], removed [/corpus/private/alice/1], unchanged 0"},
		"directory moved": {do: func(i *ingesting) {
			i.must(os.Rename(i.path("/corpus/private/alice"), i.path("/corpus/private/bob")))
		}, names: []string{aliceFirst, aliceSecond, "/corpus/private/bob/1"},
			want: "added [/corpus/private/bob/1], renewed [], removed [/corpus/private/alice/1 /corpus/private/alice/2], unchanged 0"},
		"absent": {names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it does not exist, or a symbolic link le`},
		"symbolic link": {do: func(i *ingesting) { i.must(os.Symlink(secret, i.path(fresh))) }, names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it is not a regular file`},
		"symbolic link in the place of a document": {do: func(i *ingesting) {
			i.must(os.Remove(i.path(aliceFirst)))
			i.must(os.Symlink("2", i.path(aliceFirst)))
		}, names: []string{aliceFirst}, want: "added [], renewed [], removed [/corpus/private/alice/1], unchanged 0"},
		"symbolic link to a directory": {do: func(i *ingesting) {
			i.must(os.Symlink("../../elsewhere", i.path("/corpus/public")+"/link"))
		}, names: []string{"/corpus/public/link/secret"},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/link/secret": it does not exist, or a symbolic link le`},
		"pipe": {do: func(i *ingesting) { i.must(unix.Mkfifo(i.path(fresh), 0o666)) }, names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it is not a regular file`},
		"directory": {do: func(i *ingesting) { i.must(os.Mkdir(i.path(fresh), 0o755)) }, names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it is not a regular file`},
		"name with a newline": {do: func(i *ingesting) { i.write("/corpus/public/a\nb", "x") },
			names: []string{"/corpus/public/a\nb"},
			want:  `added [], renewed [], removed [], unchanged 0; "/corpus/public/a\nb": conduit name "/corpus/public/a\nb" is no`},
		"name that is not UTF-8": {do: func(i *ingesting) { i.write("/corpus/public/a\xff", "x") },
			names: []string{"/corpus/public/a\xff"},
			want:  `added [], renewed [], removed [], unchanged 0; "/corpus/public/a\xff": conduit name "/corpus/public/a\xff" is n`},
		"name that leads upwards": {names: []string{"/corpus/public/../../../elsewhere/secret"},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/../../../elsewhere/secret": conduit name "/corpus/public/../../../el`},
		"not an ingress conduit": {do: func(i *ingesting) { i.write("/other/1", "x") }, names: []string{"/other/1"},
			want: `added [], renewed [], removed [], unchanged 0; "/other/1": no ingress conduits of a pipeline have t`},
		"another's file, linked by who may write to the directory": {do: func(i *ingesting) {
			i.must(os.Link(i.path(secret), i.path(fresh)))
			i.asRoot(12345, "/corpus/public")
		}, names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it has other names, and not only its own`},
		"another's file, linked by anybody": {do: func(i *ingesting) {
			i.must(os.Link(i.path(secret), i.path(fresh)))
			i.must(os.Chmod(i.path("/corpus/public"), 0o777))
		}, names: []string{fresh},
			want: `added [], renewed [], removed [], unchanged 0; "/corpus/public/new": it has other names, and not only its own`},
		"file with two names of the directory's owner": {do: func(i *ingesting) {
			i.must(os.Link(i.path(secret), i.path(fresh)))
			i.must(os.Chmod(i.path("/corpus/public"), 0o755))
		}, names: []string{fresh}, want: "added [/corpus/public/new], renewed [], removed [], unchanged 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := newIngesting(t)
			if test.do != nil {
				test.do(i)
			}
			before := map[string]uint32{}
			for _, name := range test.names {
				before[name], _ = i.catalog.idOf(name)
			}
			done, err := i.view.Ingest(test.names)
			i.must(err)
			if diff := cmp.Diff(test.want, done.summary()); diff != "" {
				t.Error(diff)
			}
			for _, name := range done.Renewed {
				now, _ := i.catalog.State().ID(name)
				if now <= before[name] || i.catalog.State().ClassOf(before[name]) != 0 {
					t.Errorf("%s has the number %d, and %d before", name, now, before[name])
				}
			}
			checkView(t, i.view)
			i.checkRestart()
		})
	}
}

// checkRestart compares the state with the one that is read from the disk.
func (i *ingesting) checkRestart() {
	i.Helper()
	before := dump(i.catalog.State())
	directory := filepath.Dir(i.catalog.database.Path())
	i.must(i.view.Close())
	i.must(i.catalog.Close())
	if diff := cmp.Diff(before, dump(open(i, directory).State())); diff != "" {
		i.Error(diff)
	}
}

// A retired conduit has no class, whatever facts and bundles come. Its name is another's.
func TestRetiredConduitsStayRetired(t *testing.T) {
	i := newIngesting(t)
	old, _ := i.catalog.State().ID(aliceFirst)
	i.replace(aliceFirst)
	_, err := i.view.Ingest([]string{aliceFirst})
	i.must(err)
	_, err = addFacts(i.catalog, fact("blacklist/de", "blocked", aliceFirst))
	i.must(err)
	next := testBundle("2")
	next.Rules[1].Policy.Arguments = map[string]string{"owner": "bob"}
	_, err = i.catalog.Apply(next)
	i.must(err)
	_, _, err = i.catalog.RegisterFiles(t.Context(), i.data, nil)
	i.must(err)
	if class := i.catalog.State().ClassOf(old); class != 0 {
		t.Errorf("a retired conduit has class %d", class)
	}
	_, err = i.view.Verify(t.Context(), nil)
	i.must(err)
	checkView(t, i.view)
}

// Files of one step are durable together, or not at all: too many are refused.
func TestIngestIsBounded(t *testing.T) {
	i := newIngesting(t)
	_, err := i.view.Ingest(make([]string, MaxIngest+1))
	if err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Errorf("%v", err)
	}
}

// What is linked is what was examined, whatever comes in its place.
func TestWhatIsExaminedIsLinked(t *testing.T) {
	for name, swap := range map[string]func(i *ingesting, name string){
		"by another file":     func(i *ingesting, name string) { i.must(os.Link(i.path("../elsewhere/secret"), name)) },
		"by a symbolic link":  func(i *ingesting, name string) { i.must(os.Symlink(i.path("../elsewhere/secret"), name)) },
		"by a pipe":           func(i *ingesting, name string) { i.must(unix.Mkfifo(name, 0o600)) },
		"by nothing":          func(*ingesting, string) {},
		"by a link to itself": func(i *ingesting, name string) { i.must(os.Symlink("1", name)) },
	} {
		t.Run(name, func(t *testing.T) {
			i := newIngesting(t)
			parent, base, err := i.view.open(aliceFirst)
			i.must(err)
			defer unix.Close(parent)
			file, err := openNamed(parent, base)
			i.must(err)
			defer file.close()
			i.must(os.Rename(i.path(aliceFirst), i.path("/away")))
			swap(i, i.path(aliceFirst))
			if err := file.link(int(i.view.root.Fd()), "probe"); err != nil {
				i.must(unix.Access(i.view.path, unix.F_OK))
				return // where a descriptor cannot be linked, the other file is refused
			}
			var linked unix.Stat_t
			i.must(unix.Lstat(filepath.Join(i.view.path, "probe"), &linked))
			if linked.Ino != file.stat.Ino {
				t.Errorf("inode %d is linked, and %d was examined", linked.Ino, file.stat.Ino)
			}
		})
	}
}

// The bulk of documents, which an apply registers, is examined at the link, too.
func TestLinksAreExamined(t *testing.T) {
	i := newIngesting(t)
	i.must(os.Link(i.path("../elsewhere/secret"), i.path("/corpus/public/planted")))
	i.must(os.Chmod(i.path("/corpus/public"), 0o777))
	_, _, err := i.catalog.RegisterFiles(t.Context(), i.data, nil)
	if err == nil || !strings.Contains(err.Error(), "it may be somebody else's file") {
		t.Errorf("%v", err)
	}
	id, known := i.catalog.State().ID("/corpus/public/planted")
	_, err = os.Lstat(filepath.Join(i.view.path, linkPath(i.catalog.State().ClassOf(id), id)))
	if !known || err == nil {
		t.Errorf("registered: %v, linked: %v", known, err == nil)
	}
}

// Nobody who can write into a directory of documents can keep the view from being verified, and so
// the monitor from starting.
func TestVerifyEndures(t *testing.T) {
	for name, test := range map[string]struct {
		do      func(i *ingesting) error
		refused uint64
	}{
		"a pipe":      {func(i *ingesting) error { return unix.Mkfifo(i.path(aliceFirst), 0o600) }, 1},
		"a directory": {func(i *ingesting) error { return os.Mkdir(i.path(aliceFirst), 0o700) }, 1},
		"a link":      {func(i *ingesting) error { return os.Symlink("2", i.path(aliceFirst)) }, 1},
		"a loop":      {func(i *ingesting) error { return os.Symlink("1", i.path(aliceFirst)) }, 1},
		"another's file": {func(i *ingesting) error {
			return errors.Join(os.Link(i.path("../elsewhere/secret"), i.path(aliceFirst)),
				os.Chmod(i.path("/corpus/private/alice"), 0o777))
		}, 1},
		"a link to a directory": {func(i *ingesting) error {
			return errors.Join(os.Rename(i.path("/corpus/private/alice"), i.path("/away")),
				os.Symlink("../../away", i.path("/corpus/private/alice")))
		}, 0},
		"a file in the place of the directory": {func(i *ingesting) error {
			return errors.Join(os.RemoveAll(i.path("/corpus/private/alice")),
				os.WriteFile(i.path("/corpus/private/alice"), nil, 0o600))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIngesting(t)
			i.must(os.Remove(i.path(aliceFirst)))
			i.must(test.do(i))
			repairs, err := i.view.Verify(t.Context(), nil)
			if err != nil || repairs.Refused != test.refused || (repairs.First != nil) != (test.refused > 0) {
				t.Errorf("%+v, %v", repairs, err)
			}
			if i.catalog.State().Conduits() != 3 {
				t.Errorf("%d conduits", i.catalog.State().Conduits())
			}
		})
	}
}

// A file that only has the name of a document, and is none, is not opened by its path as one.
func TestOnlyCataloguedFilesAreDocuments(t *testing.T) {
	i := newIngesting(t)
	i.must(os.Link(i.path("../elsewhere/secret"), i.path("/corpus/public/planted")))
	i.write("/other/file", "x")
	for name, want := range map[string]bool{aliceFirst: true, "/corpus/public/planted": false, "/other/file": true} {
		var stat unix.Stat_t
		i.must(unix.Stat(i.path(name), &stat))
		if got := i.view.IsCatalogued(name, uint64(stat.Dev), stat.Ino); got != want { //nolint:unconvert // of another type elsewhere
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whatever an uploader does with a name meanwhile, nothing but his own files gets into the view.
func TestIngestRaces(t *testing.T) {
	i := newIngesting(t)
	const name = "/corpus/public/race"
	secret := i.path("../elsewhere/secret")
	i.must(os.Chmod(i.path("/corpus/public"), 0o777))
	var secretStat unix.Stat_t
	i.must(unix.Stat(secret, &secretStat))
	done, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(swapped)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Remove(i.path(name))
			var err error
			switch n % 4 {
			case 0:
				err = os.WriteFile(i.path(name), []byte("own"), 0o600)
			case 1:
				err = os.Link(secret, i.path(name))
			case 2:
				err = os.Symlink(secret, i.path(name))
			case 3:
				err = unix.Mkfifo(i.path(name), 0o600)
			}
			if err != nil {
				swapped <- err
				return
			}
		}
	}()
	added := 0
	for added < 50 {
		answer, err := i.view.Ingest([]string{name})
		if err != nil && !strings.Contains(err.Error(), ErrView.Error()) {
			t.Fatal(err)
		}
		added += len(answer.Added) + len(answer.Renewed)
	}
	close(done)
	i.must(<-swapped)
	err := filepath.WalkDir(i.view.path, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return err
		}
		if stat.Ino == secretStat.Ino || stat.Mode&unix.S_IFMT != unix.S_IFREG {
			t.Errorf("the view has %s: inode %d, mode %o", path, stat.Ino, stat.Mode)
		}
		return nil
	})
	i.must(err)
}

// BenchmarkIngest catalogues new files of known classes, in steps of several sizes, beside 100,000
// documents. Files are made before.
func BenchmarkIngest(b *testing.B) {
	for _, size := range []int{1, 10, 100, MaxIngest} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			i := newBenchmarked(b)
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				var names []string
				for f := range size {
					name := fmt.Sprintf("/corpus/private/u%d/n%d-%d", f%200, n, f)
					if err := os.WriteFile(filepath.Join(i.data.Name(), name), []byte("x"), 0o600); err != nil {
						b.Fatal(err)
					}
					names = append(names, name)
				}
				b.StartTimer()
				if _, err := i.Ingest(names); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "documents/s")
		})
	}
}

// newBenchmarked is a view with 200 classes of 500 registered documents, of which few exist.
func newBenchmarked(b *testing.B) *View {
	b.Helper()
	root := b.TempDir()
	var names []string
	for user := range 200 {
		if err := os.MkdirAll(filepath.Join(root, fmt.Sprintf("data/corpus/private/u%d", user)), 0o755); err != nil {
			b.Fatal(err)
		}
		for n := range 500 {
			names = append(names, fmt.Sprintf("/corpus/private/u%d/%d", user, n))
		}
	}
	c := opened(b)
	v, err := c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = v.Close() })
	if _, _, err := c.Register(names); err != nil {
		b.Fatal(err)
	}
	return v
}
