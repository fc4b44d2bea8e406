// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"path/filepath"
	"strings"
	"testing"
)

// linuxOnly are the transcripts of testdata/raising-linux, with the reason for which FreeBSD has
// other outcomes. TestRaisingOnFreeBSD has those.
var linuxOnly = map[string]string{
	"processes":     "a task may fork, and raises its taint only without children",
	"memory":        "there is no vmsplice(2)",
	"malformed":     "what is sent behind libshai's back is read when it comes: its sender does not wait",
	"mappings-read": "the kernel (14) does not say whether a mapping could be made writable: each shared one counts",
}

// TestRaisingOnLinux plays those as TestRaising does.
func TestRaisingOnLinux(t *testing.T) {
	const folder = "testdata/raising-linux"
	files, err := filepath.Glob(folder + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if linuxOnly[strings.TrimSuffix(filepath.Base(file), ".txt")] == "" {
			t.Errorf("%s: for which reason is it not in testdata/raising?", file)
		}
	}
	playFolder(t, folder, func(t *testing.T, transcript string) string {
		return playRaising(newRaising(t), transcript)
	})
}
