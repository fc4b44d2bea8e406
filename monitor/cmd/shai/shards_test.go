// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
)

// The exported work has all facts: its file is its user's, and no file that somebody else may
// read already.
func TestExportedWorkIsItsUsers(t *testing.T) {
	socket, _ := apitest.Serve(t, &api.Handler{Service: new(apitest.Service), Audit: apitest.Log(t)}, api.Endpoints{})
	path := filepath.Join(t.TempDir(), "work")
	out := execute(t, []string{"analyze", "export", "--pipeline", "syse", path}, socket, "full")
	if !strings.Contains(out, "16 bytes") {
		t.Fatal(out)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != secret {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "the work of syse" {
		t.Errorf("it has %q, %v", content, err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := execute(t, []string{"analyze", "export", open}, socket, "full"); !strings.Contains(out, "file exists") {
		t.Error(out)
	}
}
