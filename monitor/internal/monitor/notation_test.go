// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"regexp"
	"runtime"
	"strings"

	"shai.dev/monitor/internal/audit"
)

// isReference reports whether this is the system whose own outcomes the transcripts
// contain. They follow a "~" there: an error's name, a count, a record.
const isReference = runtime.GOOS == "linux"

var (
	ownRecord = regexp.MustCompile(`(?m)^ *~ .*\n`)
	ownWord   = regexp.MustCompile(`~\w+`)
)

// asComparedHere is a transcript with as much of it as this system has to have.
func asComparedHere(transcript string) string {
	if isReference {
		return transcript
	}
	return ownWord.ReplaceAllString(ownRecord.ReplaceAllString(transcript, ""), "~")
}

// differs marks an error number as this system's own.
func differs(answer string) string {
	return strings.TrimSpace(strings.Replace(answer, "error ", "error ~", 1))
}

// ofSystemCall reports whether a record is about a call that the kernel refused by
// itself: not every kernel reports them, and calls differ.
func ofSystemCall(r audit.Record) bool {
	return r.Operation == "accept4" || strings.HasPrefix(r.Reason, "system call refused with ")
}
