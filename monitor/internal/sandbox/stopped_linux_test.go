// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What is examined of a process that waits is bounded, whatever it has open.
func TestExaminedMax(t *testing.T) {
	directory, maps := t.TempDir(), filepath.Join(t.TempDir(), "maps")
	for number := range ExaminedMax {
		if err := os.Symlink("/data/letter", filepath.Join(directory, strconv.Itoa(number))); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want error) {
		t.Helper()
		if _, err := writableDescriptors(directory); !errors.Is(err, want) {
			t.Errorf("%s descriptors: %v; want %v", when, err, want)
		}
		if err := fewMappings(maps); !errors.Is(err, want) {
			t.Errorf("%s mappings: %v; want %v", when, err, want)
		}
	}
	text := strings.Repeat("7f0000000000-7f0000001000 rw-s 00000000 00:01 1 /data/letter\n", ExaminedMax)
	if err := os.WriteFile(maps, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(fmt.Sprint(ExaminedMax), nil)
	if err := os.Symlink("/data/letter", filepath.Join(directory, strconv.Itoa(ExaminedMax))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(maps, []byte(text+"7f0000000000-7f0000001000 rw-s 00000000 00:01 1 /\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("too many", ErrTooMany)
}
