// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
)

// outdated expects that a nonce is of no use for a choice that alice could make otherwise.
func (i *ingesting) outdated(when, nonce string) {
	i.Helper()
	if _, err := i.catalog.Choose(aliceFirst, "alice", toPublic, nonce); !errors.Is(err, ErrOutdated) {
		i.Errorf("%s: %v", when, err)
	}
}

// awaitTick waits until a file that changes gets another time than a document has: file systems take theirs
// from a clock that moves every few milliseconds.
func (i *ingesting) awaitTick(name string) {
	i.Helper()
	var document, probe unix.Stat_t
	i.must(unix.Stat(i.path(name), &document))
	waiting.Until(i.T, "the file system's clock moves", func() bool {
		i.write("/probe", "")
		i.must(unix.Stat(i.path("/probe"), &probe))
		return probe.Ctim != document.Ctim
	})
}

// A choice that was signed for one content is not made for another one, however that got there.
func TestChoicesAreForOneContent(t *testing.T) {
	for name, change := range map[string]func(i *ingesting, path string) error{
		"rewritten": func(_ *ingesting, path string) error { return os.WriteFile(path, []byte("a new text"), 0o600) },
		"appended to": func(_ *ingesting, path string) error {
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteString("!")
			return errors.Join(err, file.Close())
		},
		"cut off": func(_ *ingesting, path string) error { return os.Truncate(path, 0) },
		"of former times": func(_ *ingesting, path string) error {
			return os.Chtimes(path, time.Time{}, time.Unix(0, 0))
		},
		"rewritten, with the time of before": func(_ *ingesting, path string) error {
			before, err := os.Stat(path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[0]++
			return errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, time.Time{}, before.ModTime()))
		},
		"replaced":        func(i *ingesting, _ string) error { i.replace(aliceFirst); return nil },
		"gone":            func(_ *ingesting, path string) error { return os.Remove(path) },
		"no regular file": func(_ *ingesting, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			i := newChoosing(t)
			before := i.item(aliceFirst).Nonce
			i.awaitTick(aliceFirst)
			i.must(change(i, i.path(aliceFirst)))
			i.outdated(name, before)
			i.must(i.choose(aliceFirst, "alice", toPublic))
		})
	}
}

// Reading and choices for other documents leave an offer as it is.
func TestOffersLast(t *testing.T) {
	i := newChoosing(t)
	before := i.item(aliceFirst).Nonce
	_, err := os.ReadFile(i.path(aliceFirst))
	i.must(err)
	i.write("/corpus/private/alice/new", "text")
	_, err = i.view.Ingest([]string{"/corpus/private/alice/new", aliceFirst})
	i.must(err)
	i.must(i.choose(aliceSecond, "alice", toPublic))
	_, err = i.view.Verify(t.Context(), nil)
	i.must(err)
	_, err = i.catalog.Choose(aliceFirst, "alice", toPublic, before)
	i.must(err)
}

// A signature of before is of no use when the catalog comes back as it was: it would be a second time.
func TestChoicesAreMadeOnceAfterARestore(t *testing.T) {
	i := newChoosing(t)
	dir := filepath.Dir(i.catalog.database.Path())
	i.must(i.catalog.Snapshot(t.Context(), 1))
	used, withheld := i.item(aliceFirst).Nonce, i.item(aliceSecond).Nonce
	_, err := i.catalog.Choose(aliceFirst, "alice", toPublic, used)
	i.must(err)
	i.must(errors.Join(i.view.Close(), i.catalog.Close()))
	snapshots, err := Snapshots(t.Context(), dir)
	i.must(err)
	_, err = Restore(t.Context(), dir, snapshots[0].Name)
	i.must(err)
	i.catalog = open(t, dir)
	i.view, err = i.catalog.AttachView(i.data, i.view.path)
	i.must(err)
	t.Cleanup(func() { _ = i.view.Close() })
	_, err = i.view.Verify(t.Context(), nil)
	i.must(err)
	i.expectPolicy("restored", aliceFirst, alices)
	i.outdated("used before the restore", used)
	if _, err := i.catalog.Choose(aliceSecond, "alice", toPublic, withheld); !errors.Is(err, ErrOutdated) {
		t.Errorf("withheld since before the restore: %v", err)
	}
	i.must(i.choose(aliceFirst, "alice", toPublic))
}

// An offer is good for at least ten minutes and at most twenty.
func TestOffersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time passes while all wait
		c := open(t, t.TempDir())
		defer c.Close()
		i := &ingesting{T: t, catalog: c}
		_, err := c.Apply(choosingBundle("choices"))
		i.must(err)
		register(t, c, aliceFirst)
		for _, test := range []struct {
			begin, wait time.Duration // since the catalog was opened, and until the choice
			want        error
		}{
			{0, 20*time.Minute - 1, nil},
			{0, 20 * time.Minute, ErrOutdated},
			{10*time.Minute - 1, 10 * time.Minute, nil},
			{10*time.Minute - 1, 10*time.Minute + 1, ErrOutdated},
			{5 * time.Minute, 10 * time.Minute, nil},
			{0, 24 * time.Hour, ErrOutdated},
		} {
			time.Sleep(offerPeriod - time.Since(c.opened)%offerPeriod + test.begin)
			offered := i.item(aliceFirst).Nonce
			time.Sleep(test.wait)
			if _, err := c.Choose(aliceFirst, "alice", toPublic, offered); !errors.Is(err, test.want) {
				t.Errorf("%s and then %s: %v, want %v", test.begin, test.wait, err, test.want)
			}
		}
	})
}
