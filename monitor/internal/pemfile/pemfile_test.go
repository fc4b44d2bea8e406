// SPDX-License-Identifier: BSD-2-Clause

package pemfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/plainfile"
)

// Opened as any file, the pipe would let this test wait; read whole, the long file would take gigabytes.
func TestOnlyFilesOfSomeLengthAreRead(t *testing.T) {
	directory := t.TempDir()
	pipe, long := filepath.Join(directory, "pipe"), filepath.Join(directory, "long")
	other := filepath.Join(directory, "o")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(long, nil, 0o600), os.Truncate(long, 8<<30),
		os.WriteFile(other, []byte("no PEM"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{pipe: plainfile.ErrIrregular, long: plainfile.ErrTooLong} {
		if _, err := Authorities(path); !errors.Is(err, want) {
			t.Errorf("authorities of %s: %v", path, err)
		}
		if _, err := Pair(path, other); !errors.Is(err, want) {
			t.Errorf("certificate %s: %v", path, err)
		}
		if _, err := Pair(other, path); !errors.Is(err, want) {
			t.Errorf("key %s: %v", path, err)
		}
	}
	if _, err := Authorities(other); err == nil || !strings.Contains(err.Error(), "it contains no PEM certificate") {
		t.Error(err)
	}
	if _, err := Pair(other, other); err == nil {
		t.Error("what is no PEM is accepted")
	}
}
