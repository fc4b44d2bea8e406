// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStoredAnalysis(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	want := m.analyses["bare"].result
	path := filepath.Join(t.TempDir(), "analysis")
	if got, _, err := storedAnalysis(path, p.Plan(), m.state()); got != nil || err != nil {
		t.Errorf("nothing is stored: %v, %v", got, err)
	}
	for range 2 { // a new file, and in place of another
		if err := storeAnalysis(path, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := storedAnalysis(path, p.Plan(), m.state()); err != nil ||
		string(got.Encode()) != string(want.Encode()) {
		t.Errorf("another result was read: %v", err)
	}
	other := *p.Plan()
	other.Pipeline = "other"
	if got, _, err := storedAnalysis(path, &other, m.state()); got != nil || err != nil {
		t.Errorf("of another plan: %v, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if got, _, err := storedAnalysis(path, p.Plan(), m.state()); got != nil || err == nil {
		t.Errorf("a damaged file was read: %v", got)
	}
}
