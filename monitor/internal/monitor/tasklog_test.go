// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A log and the one before it stay within their limit, and keep what was written last.
func TestTaskLogIsLimited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "task.log")
	for range 2 { // the second is a restart: it goes on where the first one stopped
		log, err := openTaskLog(path, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if _, err := fmt.Fprintf(log, "line %3d\n", i); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	if len(now) > 100 || len(before) > 100 || len(before) < 90 {
		t.Errorf("%d and %d bytes", len(now), len(before))
	}
	if all := string(before) + string(now); all[len(all)-9:] != "line  29\n" || len(all) < 100 {
		t.Errorf("%q", all)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestALineLongerThanTheLimitIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.log")
	log, err := openTaskLog(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Write(make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	if about, err := os.Stat(path); err != nil || about.Size() != 50 {
		t.Errorf("%v, %v", about, err)
	}
}
