// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Who writes into a directory of documents may be nobody to trust. He can make links, pipes
// and directories there, and change any of them at any time. What is linked is therefore
// exactly the file that was examined.

// errNoDocument says that what has a document's name cannot be a document.
var errNoDocument = errors.New("not linked")

var (
	errIrregular = errors.New("it is not a regular file")
	// errPlanted is about a file to which somebody else may have given its name.
	errPlanted = errors.New("it has other names, and not only its owner can write to its directory: " +
		"it may be somebody else's file; copy it")
)

// linkAt links the file base of a directory, if it can be a document. It is no error if there
// is none.
func (v *View) linkAt(parent int, base string, what document, target string) error {
	if err := v.give(what.set, parent, base, 1); err != nil {
		return err
	}
	file, err := openNamed(parent, base)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open document %s: %w", what.name, err)
	}
	defer file.close()
	if err := file.mayBeDocument(parent, 1); err != nil {
		return fmt.Errorf("document %s is %w: %w", what.name, errNoDocument, err)
	}
	err = file.link(int(v.root.Fd()), target)
	if errors.Is(err, unix.EEXIST) {
		if err = v.unlink(target); err == nil {
			err = file.link(int(v.root.Fd()), target)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("link document %s: %w", what.name, diskFull(err))
	}
	v.judge(what.set, what.name, &file.stat)
	return nil
}

// mayBeDocument reports why a file of a directory cannot be a document. names is the number of
// names that it has if it has one outside of the view.
func (f *namedFile) mayBeDocument(directory int, names uint64) error {
	if f.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return errIrregular
	}
	if uint64(f.stat.Nlink) <= names {
		return nil
	}
	var around unix.Stat_t
	if err := unix.Fstat(directory, &around); err != nil {
		return err
	}
	if isPlanted(&around, &f.stat) {
		return errPlanted
	}
	return nil
}

// isPlanted reports whether somebody who does not own a file with several names may have given
// it its name in a directory. link(2) lets everybody do so whom it lets write into the
// directory, where the sysctl fs.protected_hardlinks is 0.
func isPlanted(directory, file *unix.Stat_t) bool {
	const othersWrite = 0o022
	return directory.Mode&othersWrite != 0 || directory.Uid != file.Uid && directory.Uid != 0
}
