// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"io/fs"
)

// refusal is an error of [Check]. The authors of manifests see its text in the status of their
// pipeline: it names the runtime as the manifest does, and no other path, which could be one of
// another namespace's member.
type refusal struct{ text, detail string }

func (r *refusal) Error() string { return r.text }

// Detail returns what the text of an error of [Check] leaves out, for the monitor's own log; "" if
// nothing.
func Detail(err error) string {
	var why *refusal
	if errors.As(err, &why) {
		return why.detail
	}
	return ""
}

// withoutPath returns the cause of an error alone: a path in it is where the author's links lead.
func withoutPath(err error) error {
	var about *fs.PathError
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
