// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package pipeline

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// The administrator types remedies in a root shell, and manifests name the directories: a
// shell takes each name as one word, whatever is in it.
func TestRemediesQuotePaths(t *testing.T) {
	user := &plan.User{Group: uint32(os.Getgid())}
	root := t.TempDir()
	for name, want := range map[string]string{
		"plain":       "/plain",
		"two words":   "'/two words'",
		"a;>made":     "'/a;>made'",
		"$(>made)":    "'/$(>made)'",
		"`>made`":     "'/`>made`'",
		"it's;>made'": `'/it'\''s;>made'\'''`,
		"line\n>made": "'/line\n>made'",
	} {
		const says = "let the group read them: "
		if got := Remedy("/"+name, user); got != fmt.Sprintf("%schgrp -R %d %[3]s && chmod -R g+rX %[3]s", says,
			user.Group, want) {
			t.Errorf("%q: %s; want %s", name, got, want)
		}
		directory := filepath.Join(root, name)
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
		command := strings.TrimPrefix(Remedy(directory, user), says)
		if output, err := exec.Command("/bin/sh", "-c", "cd '"+root+"' && "+command).CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", name, err, output)
		}
		if info, err := os.Stat(directory); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%q: the group cannot read it: %v, %v", name, info, err)
		}
	}
	if made, err := filepath.Glob(filepath.Join(root, "made*")); err != nil || len(made) > 0 {
		t.Errorf("a name was executed: %q, %v", made, err)
	}
}
