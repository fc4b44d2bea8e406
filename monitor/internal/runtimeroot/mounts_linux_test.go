// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A runtime beneath which data are mounted is refused, and so is one that lies in data
// by way of a mount.
func TestBindMounts(t *testing.T) {
	root, places := site(t)
	programs := filepath.Join(root, "opt/programs")
	for name, test := range map[string]struct{ source, target string }{
		"data in the runtime": {"srv/data/inbox", "opt/programs/lib"},
		"runtime in the data": {"opt/programs", "srv/data/programs"},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(root, test.target)
			err := unix.Mount(filepath.Join(root, test.source), target, "", unix.MS_BIND, "")
			if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
				t.Skip("only the superuser may mount; TestOrigins has the same cases")
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = Check([]string{programs}, places)
			if failed := unix.Unmount(target, unix.MNT_DETACH); failed != nil {
				t.Fatal(failed)
			}
			if err == nil || !strings.Contains(err.Error(), "through a mount") {
				t.Errorf("mounted: %v", err)
			}
			if _, err := Check([]string{programs}, places); err != nil {
				t.Errorf("not mounted any more: %v", err)
			}
		})
	}
}
