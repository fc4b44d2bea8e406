// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/policy"
)

// MaxIngest is the largest number of files of one durable step, which logins do not wait for, and
// other changes do.
const MaxIngest = 1000

// Ingested says what has become of files.
type Ingested struct {
	Added   []string // documents that are new
	Renewed []string // documents with new content: they have new numbers
	Removed []string // documents that are gone
	Refused []Refused
	// Unchanged counts documents that were catalogued as they are.
	Unchanged int
	// Change is the change of the catalog; nil if there is none.
	Change *Change
}

// Refused is a file that is no document.
type Refused struct{ Name, Reason string }

// Ingest makes the catalog agree with files beneath the data directory, at most MaxIngest, in one
// durable step. A file that is new becomes a conduit. So does one that is not the file in the
// view any more: it is another conduit than before, with a number and a decision of its own, and
// nobody reads new content by an earlier decision. The former conduit has no class from then on;
// descriptors that are open stay open. The same happens to a document whose file is gone. An
// error that wraps ErrView comes with what is in force.
func (v *View) Ingest(names []string) (Ingested, error) {
	if len(names) > MaxIngest {
		return Ingested{}, fmt.Errorf("ingest %d files at once; at most %d are allowed", len(names), MaxIngest)
	}
	names, out := v.withoutUnchanged(slices.Compact(slices.Sorted(slices.Values(names))))
	if len(names) == 0 {
		return out, nil
	}
	change, err := v.catalog.commit("ingest documents", func(d *draft) error { return v.ingest(d, names, &out) })
	if change == nil {
		return Ingested{}, err
	}
	out.Change = change
	return out, err
}

// withoutUnchanged leaves out files for which nothing is to be done. A durable step costs
// milliseconds.
func (v *View) withoutUnchanged(names []string) (rest []string, out Ingested) {
	state := v.catalog.State()
	for _, name := range names {
		if refusal := state.refusesIngress(name); refusal != "" {
			out.Refused = append(out.Refused, Refused{name, refusal})
			continue
		}
		found := v.look(state, name)
		_, isKnown := state.ID(name)
		switch {
		case found.isLinked:
			out.Unchanged++
		case found.isUnknown, found.refusal != "" && !isKnown:
			out.Refused = append(out.Refused, Refused{name, found.refusal})
		default:
			rest = append(rest, name)
		}
	}
	return rest, out
}

// ingest is the durable step.
func (v *View) ingest(d *draft, names []string, out *Ingested) error {
	var register []string
	for _, name := range names {
		if refusal := d.next.refusesIngress(name); refusal != "" {
			out.Refused = append(out.Refused, Refused{name, refusal}) // the bundle has just changed
			continue
		}
		found := v.look(d.next, name)
		isKnown := d.tx.Bucket(bucketNames).Get([]byte(name)) != nil
		if isKnown && !found.isLinked && !found.isUnknown {
			if err := d.retire(name); err != nil {
				return err
			}
		}
		switch {
		case found.isLinked:
			out.Unchanged++
		case found.isUnknown:
			out.Refused = append(out.Refused, Refused{name, found.refusal})
		case found.refusal == "" && isKnown:
			out.Renewed = append(out.Renewed, name)
			register = append(register, name)
		case found.refusal == "":
			out.Added = append(out.Added, name)
			register = append(register, name)
		case isKnown:
			out.Removed = append(out.Removed, name)
		default:
			out.Refused = append(out.Refused, Refused{name, found.refusal})
		}
	}
	_, err := d.register(register)
	return err
}

// retire takes the number of a document from its name. Nobody has access to it from then on.
func (d *draft) retire(name string) error {
	key := slices.Clone(d.tx.Bucket(bucketNames).Get([]byte(name)))
	record, err := decodeConduit(d.tx.Bucket(bucketConduits).Get(key))
	if err != nil {
		return fmt.Errorf("read conduit %s: %w", name, err)
	}
	record.isRetired = true
	return errors.Join(d.move(binary.BigEndian.Uint32(key), record, 0),
		d.ledger.bucket(bucketNames).Delete([]byte(name)))
}

// refusesIngress reports why a name cannot be that of a document; "" if it can.
func (s *State) refusesIngress(name string) string {
	if err := checkName(name); err != nil {
		return err.Error()
	}
	if !s.isIngress(name) {
		return "no ingress conduits of a pipeline have this path"
	}
	return ""
}

// isIngress reports whether the view links a file of this name.
func (s *State) isIngress(name string) bool {
	rule, _, covered := s.rules.ruleFor(name)
	return covered && rule.Ingress && rule.Kind == policy.FileConduit
}

// looked is what is found at a document's name.
type looked struct {
	isLinked bool   // it is the file in the view
	refusal  string // why it cannot be a document; "" if it can
	// isUnknown says that it could not be examined: the refusal says why, and nothing of what is
	// there.
	isUnknown bool
}

// errAbsent says why there is no document.
const errAbsent = "it does not exist, or a symbolic link leads to it"

// isAbsent reports whether an error says that there is no document. Another one (too many open
// files) says nothing of it.
func isAbsent(err error) bool {
	for _, one := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.ENAMETOOLONG} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// look examines what a name stands for now.
func (v *View) look(state *State, name string) looked {
	v.mu.Lock()
	defer v.mu.Unlock()
	parent, base, err := v.parent(name)
	if err != nil {
		return v.unopened(name, err)
	}
	defer unix.Close(parent)
	file, err := openNamed(parent, base)
	if err != nil {
		return v.unopened(name, err)
	}
	defer file.close()
	if v.isLinked(state, name, file) {
		return looked{isLinked: true}
	}
	err = file.mayBeDocument(parent, 1)
	if errors.Is(err, errPlanted) {
		v.arrivals.addLater(name) // one of its names may be in the view, and disappear
	}
	if err != nil {
		return looked{refusal: err.Error()}
	}
	return looked{}
}

// unopened says what it means that a name could not be opened. It fails for one file only: who
// can make it fail must not keep others out.
func (v *View) unopened(name string, err error) looked {
	if isAbsent(err) {
		return looked{refusal: errAbsent}
	}
	v.arrivals.addLater(name)
	return looked{refusal: err.Error(), isUnknown: true}
}

// isLinked reports whether the view has a file as the document of a name.
func (v *View) isLinked(state *State, name string, file *namedFile) bool {
	id, isKnown := state.ID(name)
	class := state.ClassOf(id)
	if !isKnown || class == 0 || !state.viewed(class) {
		return false
	}
	var linked unix.Stat_t
	err := unix.Fstatat(int(v.root.Fd()), linkPath(class, id), &linked, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && linked.Dev == file.stat.Dev && linked.Ino == file.stat.Ino
}

// Find reports what is at a name beneath the data directory: nothing, a directory, or something
// else.
func (v *View) Find(name string) (isThere, isDirectory bool) {
	if relative := strings.TrimPrefix(name, "/"); relative != "" {
		stat, err := v.statDocument(name)
		return err == nil, err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	return true, true
}

// Registered lists a name and the names beneath it, as far as they are registered, sorted.
func (v *View) Registered(name string) []string {
	var names []string
	if _, known := v.catalog.idOf(name); known {
		names = append(names, name)
	}
	return append(names, v.namesIn(name, true)...)
}
