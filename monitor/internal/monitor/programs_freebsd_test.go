// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
)

// askedWhenGrown says how often a live session asks about a document that its set has gained
// since it began: the stub has the session's first set.
const askedWhenGrown = "asked 1"

// providePrograms finds them beside this test program: they are built on another
// system (make -C freebsd image).
func providePrograms() (programs, error) {
	folder, err := besideItself("probe_worker", "probe_raising", "libshai.so")
	return programs{probe: folder, library: folder}, err
}

// provideFrontEnd finds Sys-E's front end and its fast engine there, too, and returns the folder.
func provideFrontEnd() (string, error) {
	return besideItself("syse-frontend", "syse-engine", "page.html", "advertisements.txt", "topics.txt")
}

// besideItself is the folder of this test program, if the files are there.
func besideItself(names ...string) (string, error) {
	itself, err := os.Executable()
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(itself)
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("a file that make -C freebsd image puts beside the tests: %w", err)
		}
	}
	return folder, nil
}

func removeBuilt() {}
