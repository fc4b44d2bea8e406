// SPDX-License-Identifier: BSD-2-Clause

// Package taskid assigns pipelines and tasks their users: one user, and one group of the same
// number, for each pipeline of each data directory, and one user for each of its tasks. The
// pipeline's files belong to the first, and processes run as the others. All monitors of a
// machine share one registry, so that no number is given twice, even under different monitors.
package taskid

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Range holds the numbers that pipelines and tasks may get, both ends included.
type Range struct{ First, Last uint32 }

// Default is a range that Linux and FreeBSD leave unused: above the users of people and of
// systemd (up to 65,535), below subordinate users (from 100,000).
var Default = Range{70000, 79999}

// Check refuses ranges that contain users of the system.
func (r Range) Check() error {
	const system, none = 1000, 65534
	switch {
	case r.First > r.Last:
		return fmt.Errorf("%d-%d begins after its end", r.First, r.Last)
	case r.First < system:
		return fmt.Errorf("%d-%d contains users of the system; begin at %d or above", r.First, r.Last, system)
	case r.First <= none && none <= r.Last || r.Last == ^uint32(0):
		return fmt.Errorf("%d-%d contains the number of the user nobody", r.First, r.Last)
	}
	return nil
}

// Registry records which pipeline and which task has which number. It is safe for concurrent use, also
// by several processes.
type Registry struct {
	Path  string // a file that only the superuser may write; made if it is missing
	Range Range
}

// OrDefault returns r with the defaults for missing fields: the registry that the
// monitors of a machine share.
func (r Registry) OrDefault() Registry {
	if r.Path == "" {
		r.Path = "/var/lib/shai-tasks/ids.json"
	}
	if r.Range == (Range{}) {
		r.Range = Default
	}
	return r
}

// entry is one assigned number.
type entry struct {
	ID   uint32 `json:"id"`
	Data string `json:"data"` // the data directory
	// Mark distinguishes the directory from a later one at the same path. "": it is not known.
	Mark     string `json:"mark,omitempty"`
	Pipeline string `json:"pipeline"`
	Task     string `json:"task,omitempty"` // "": the pipeline itself
}

// Numbers are those of a pipeline and of its tasks.
type Numbers struct {
	Pipeline uint32
	Tasks    map[string]uint32 // by name
}

// Of returns the numbers of a pipeline and of those tasks of it, always the same ones. Others
// get a number only when the data directory, with all files of that user, no longer exists;
// so do those of a data directory that is made anew at its path. What users have left
// elsewhere, such as in /tmp, is then nobody's.
func (r Registry) Of(data, pipeline string, tasks ...string) (Numbers, error) {
	numbers, err := r.of(data, pipeline, tasks)
	if err != nil {
		return Numbers{}, fmt.Errorf("find users for pipeline %s and its tasks: %w", pipeline, err)
	}
	return numbers, nil
}

func (r Registry) of(data, pipeline string, tasks []string) (numbers Numbers, err error) {
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o755); err != nil { //nolint:gosec // what is in it is closed
		return numbers, err
	}
	release, err := lock(r.Path + ".lock")
	if err != nil {
		return numbers, err
	}
	defer release()
	taken, err := r.read()
	if err != nil {
		return numbers, err
	}
	mark, err := markOf(data)
	if err != nil {
		return numbers, fmt.Errorf("recognize data directory %s: %w", data, err)
	}
	assigned := assignment{Range: r.Range, data: data, mark: mark, taken: taken}
	// The pipeline comes first. Monitors of earlier versions take the first number with its name.
	if numbers.Pipeline, err = assigned.number(pipeline, ""); err != nil {
		return Numbers{}, err
	}
	numbers.Tasks = map[string]uint32{}
	for _, task := range tasks {
		if numbers.Tasks[task], err = assigned.number(pipeline, task); err != nil {
			return Numbers{}, err
		}
	}
	if assigned.isChanged {
		err = r.write(assigned.taken)
	}
	return numbers, err
}

// assignment is a registry that is being changed for a data directory.
type assignment struct {
	Range
	data, mark string
	taken      []entry
	isSwept    bool // of the numbers of data directories that are gone
	isChanged  bool
}

// number returns the number of a pipeline, or of a task, and takes a free one if it has none.
func (a *assignment) number(pipeline, task string) (uint32, error) {
	own := 0
	for i, e := range a.taken {
		if !a.isOwn(e) {
			continue
		}
		own++
		if e.Pipeline == pipeline && e.Task == task && a.First <= e.ID && e.ID <= a.Last {
			if e.Mark == "" && a.mark != "" { // of an earlier version
				a.taken[i].Mark, a.isChanged = a.mark, true
			}
			return e.ID, nil
		}
	}
	if own >= a.share() {
		return 0, fmt.Errorf("data directory %s has had %d pipelines and tasks, and gets no more of %d-%d: the other monitors of this machine need "+
			"some; give a longer range (shai monitor --task-ids), or make the data directory anew", a.data, own, a.First, a.Last)
	}
	last := a.last()
	if !a.isSwept {
		used, err := a.inUse()
		if err != nil {
			return 0, err
		}
		a.taken, a.isSwept = used, true
	}
	id, err := a.free(last)
	if err != nil {
		return 0, err
	}
	a.taken, a.isChanged = append(a.taken, entry{id, a.data, a.mark, pipeline, task}), true
	return id, nil
}

// isOwn reports whether a number is of this data directory, and not of an earlier one at its path.
func (a *assignment) isOwn(e entry) bool {
	return e.Data == a.data && (e.Mark == a.mark || e.Mark == "" || a.mark == "")
}

// share returns how many numbers a data directory may have. Whoever writes its pipelines
// could otherwise take all of the machine's.
func (r Range) share() int {
	const few, part = 1000, 10
	size := int(r.Last - r.First + 1)
	if size < few {
		return size
	}
	return size / part
}

// last returns the highest assigned number, or the one before the range.
func (a *assignment) last() uint32 {
	last := a.First - 1
	for _, e := range a.taken {
		if e.ID <= a.Last {
			last = max(last, e.ID)
		}
	}
	return last
}

// free returns the first free number after this one, or else any: a number stays unused as long
// as possible before it is reused. Numbers of the machine's accounts are not free.
func (a *assignment) free(last uint32) (uint32, error) {
	used, next := map[uint32]bool{}, last+1
	for _, e := range a.taken {
		used[e.ID] = true
	}
	for range a.Last - a.First + 1 {
		if next > a.Last {
			next = a.First
		}
		if !used[next] && !isAccount(next) {
			return next, nil
		}
		next++
	}
	return 0, fmt.Errorf("all of %d-%d are taken, one for each pipeline and each task that this machine has had, or are accounts; give more "+
		"(shai monitor --task-ids), or remove data directories that are not needed", a.First, a.Last)
}

// isAccount reports whether the machine has a user or a group of this number.
func isAccount(id uint32) bool {
	number := strconv.FormatUint(uint64(id), 10)
	_, noUser := user.LookupId(number)
	_, noGroup := user.LookupGroupId(number)
	return noUser == nil || noGroup == nil
}

// inUse returns the numbers without those of data directories that no longer exist and that
// no process has. If a directory was only moved, its number stays in use as long as a task runs.
func (a *assignment) inUse() ([]entry, error) {
	var gone []uint32
	for _, e := range a.taken {
		if !a.isOwn(e) && (e.Data == a.data || isGone(e.Data)) {
			gone = append(gone, e.ID)
		}
	}
	if len(gone) == 0 {
		return a.taken, nil
	}
	running, err := running(gone)
	if err != nil {
		return nil, fmt.Errorf("check whether processes have the users of removed data directories: %w", err)
	}
	return slices.DeleteFunc(a.taken, func(e entry) bool {
		return slices.Contains(gone, e.ID) && !running[e.ID]
	}), nil
}

// Pipelines returns the pipelines of a data directory by their numbers and those of their tasks,
// removed ones too.
func (r Registry) Pipelines(data string) (map[uint32]string, error) {
	taken, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("find the users of the pipelines of %s: %w", data, err)
	}
	pipelines := map[uint32]string{}
	for _, e := range taken {
		if e.Data == data {
			pipelines[e.ID] = e.Pipeline
		}
	}
	return pipelines, nil
}

// DataDirectories returns the existing data directories that have numbers: those of all
// monitors of the machine that run as the superuser and share the registry.
func (r Registry) DataDirectories() ([]string, error) {
	taken, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("find the data directories of this machine's monitors: %w", err)
	}
	var directories []string
	for _, e := range taken {
		if !slices.Contains(directories, e.Data) && !isGone(e.Data) {
			directories = append(directories, e.Data)
		}
	}
	return directories, nil
}

func isGone(directory string) bool {
	_, err := os.Lstat(directory)
	return errors.Is(err, fs.ErrNotExist)
}

func (r Registry) read() ([]entry, error) {
	text, err := os.ReadFile(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var taken []entry
	if err := json.Unmarshal(text, &taken); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; restore it, or stop every monitor of this machine, remove it, and apply the bundles again", r.Path, err)
	}
	return taken, nil
}

// write replaces the file in one step. It names pipelines, tasks and data of everybody on the
// machine, which no task is to read.
func (r Registry) write(taken []entry) error {
	text, err := json.MarshalIndent(taken, "", "  ")
	if err != nil {
		return err
	}
	draft, err := os.OpenFile(r.Path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = draft.Write(append(text, '\n'))
	err = errors.Join(err, draft.Chmod(0o600), draft.Sync(), draft.Close()) // it may have been there
	if err != nil {
		return err
	}
	return os.Rename(draft.Name(), r.Path)
}

// lock waits until no other monitor is changing the registry.
func lock(path string) (release func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
