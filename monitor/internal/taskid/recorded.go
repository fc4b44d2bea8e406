// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Recorded knows the data directories in a registry, for those who ask at each open of a task.
// It reads the registry again when it has changed. It is safe for concurrent use.
type Recorded struct {
	Registry Registry

	mutex       sync.Mutex
	read        os.FileInfo // the file that was read; nil: none that could not have changed since
	directories []string
}

// clockStep is the most by which a file's time of change may lag behind the clock.
const clockStep = time.Second

// DataDirectories returns all data directories that have numbers, those that do not exist (yet)
// among them. It looks at none of them: one may be on a file system that does not answer.
func (d *Recorded) DataDirectories() ([]string, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := time.Now()
	info, err := os.Stat(d.Registry.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.read = nil
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the data directories of this machine's monitors: %w", err)
	case d.read != nil && isUnchanged(d.read, info):
		return d.directories, nil
	}
	taken, err := d.Registry.read()
	if err != nil {
		return nil, fmt.Errorf("find the data directories of this machine's monitors: %w", err)
	}
	d.read, d.directories = nil, nil
	for _, e := range taken {
		if !slices.Contains(d.directories, e.Data) {
			d.directories = append(d.directories, e.Data)
		}
	}
	if info.ModTime().Add(clockStep).Before(now) {
		d.read = info
	}
	return d.directories, nil
}

func isUnchanged(before, now os.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}
