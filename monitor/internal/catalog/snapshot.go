// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// Snapshots are copies of a catalog's database, in the folder snapshots of its directory:
// snapshots/20261122T124821.000Z.db. A copy that has another name is not finished.
const (
	snapshotFolder = "snapshots"
	snapshotSuffix = ".db"
	snapshotTime   = "20060102T150405.000Z"
	unfinished     = ".unfinished"
)

// Snapshot is a copy of a catalog.
type Snapshot struct {
	Name    string    `json:"name"`
	Taken   time.Time `json:"taken"`
	Size    int64     `json:"size"` // bytes
	Summary Summary   `json:"summary"`
	Damage  string    `json:"damage,omitempty"` // why it cannot be restored
}

// Snapshot copies the database as it is at one moment, examines the copy, and removes all
// but the newest keep copies. Changes go on in the meantime. If the copy is damaged, so is
// the catalog: the error wraps ErrDamaged, and the earlier copies stay.
func (c *Catalog) Snapshot(ctx context.Context, keep int) error {
	dir := filepath.Join(filepath.Dir(c.database.Path()), snapshotFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("take snapshot: %w", diskFull(err))
	}
	path := filepath.Join(dir, time.Now().UTC().Format(snapshotTime)+snapshotSuffix)
	err := c.database.View(func(tx *bbolt.Tx) error {
		return writeFile(path+unfinished, func(file io.Writer) error {
			_, err := tx.WriteTo(file)
			return err
		})
	})
	if err == nil {
		_, err = checkFile(ctx, path+unfinished)
	}
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("take snapshot: %w", diskFull(err)), os.Remove(path+unfinished))
	}
	return errors.Join(syncDirectory(dir), prune(dir, keep))
}

// prune removes all snapshots but the newest, and what a killed monitor has left.
func prune(dir string, keep int) error {
	names, err := snapshotNames(dir)
	if err != nil {
		return err
	}
	old := names[:max(len(names)-keep, 0)]
	left, _ := filepath.Glob(filepath.Join(dir, "*"+unfinished))
	var failures []error
	for _, name := range old {
		failures = append(failures, os.Remove(filepath.Join(dir, name)))
	}
	for _, path := range left {
		failures = append(failures, os.Remove(path))
	}
	return errors.Join(failures...)
}

// snapshotNames lists the finished snapshots, oldest first.
func snapshotNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if _, err := time.Parse(snapshotTime+snapshotSuffix, entry.Name()); err == nil {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// Snapshots lists and examines the snapshots of the catalog in a directory, oldest first.
func Snapshots(ctx context.Context, dir string) ([]Snapshot, error) {
	dir = filepath.Join(dir, snapshotFolder)
	names, err := snapshotNames(dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var list []Snapshot
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		one := Snapshot{Name: strings.TrimSuffix(name, snapshotSuffix), Size: info.Size()}
		if one.Taken, err = time.Parse(snapshotTime+snapshotSuffix, name); err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		if one.Summary, err = checkFile(ctx, filepath.Join(dir, name)); err != nil {
			one.Damage = err.Error()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// Restore puts a snapshot in the place of the catalog in a directory. It returns the path
// at which it keeps the file that was there, "" if there was none. It fails with ErrInUse
// if a monitor has the catalog open, and with ErrDamaged if the snapshot is damaged.
func Restore(ctx context.Context, dir, name string) (kept string, err error) {
	if err := failIfInUse(dir); err != nil {
		return "", err
	}
	names, err := snapshotNames(filepath.Join(dir, snapshotFolder))
	if err != nil {
		return "", fmt.Errorf("restore catalog: %w", err)
	}
	if !slices.Contains(names, name+snapshotSuffix) {
		return "", fmt.Errorf("restore catalog: there is no snapshot %q", name)
	}
	source := filepath.Join(dir, snapshotFolder, name+snapshotSuffix)
	file := filepath.Join(dir, databaseName)
	if err := copyFile(source, file+unfinished); err != nil {
		return "", fmt.Errorf("restore catalog: %w", diskFull(err))
	}
	if _, err := checkFile(ctx, file+unfinished); err != nil {
		return "", errors.Join(fmt.Errorf("restore snapshot %s: %w", name, err), os.Remove(file+unfinished))
	}
	kept = file + ".before-" + time.Now().UTC().Format(snapshotTime)
	if err := os.Rename(file, kept); errors.Is(err, fs.ErrNotExist) {
		kept = ""
	} else if err != nil {
		return "", fmt.Errorf("restore catalog: %w", err)
	}
	if err := errors.Join(os.Rename(file+unfinished, file), syncDirectory(dir)); err != nil {
		return kept, fmt.Errorf("restore catalog: %w", err)
	}
	return kept, nil
}

// failIfInUse tries the lock that an open database holds.
func failIfInUse(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, databaseName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore catalog: %w", err)
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("restore catalog %s: %w; stop the monitor first", file.Name(), ErrInUse)
	}
	return err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return writeFile(to, func(file io.Writer) error {
		_, err := io.Copy(file, source)
		return err
	})
}

// writeFile makes a file whose content has reached the disk.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
