// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// printed is output that is read while it is written.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *printed) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text.String(), text)
}

// With --watch the tests run again when a file changes that they were made of, also after a
// mistake, until Ctrl-C.
func TestWatchRunsTestsAgain(t *testing.T) {
	directory := t.TempDir()
	save := func(name, text string) { // as editors do
		t.Helper()
		draft := filepath.Join(directory, name+".draft")
		if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(draft, filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	save("p.pol", `read :- sKeyIs("bob").`)
	save("p_test.yaml", "tests: [{name: one, principal: alice, expect: allowed}]\n")
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr printed
	p := &program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		environment: func(string) string { return "" }}
	ended := make(chan int, 1)
	go func() {
		ended <- p.run(ctx, []string{"policy", "test", "--watch", filepath.Join(directory, "p_test.yaml")})
	}()
	waitFor := func(text string) {
		t.Helper()
		waiting.Until(t, text, func() bool { return stdout.has(text) && stderr.has("waiting for changes") })
	}
	waitFor("0 passed, 1 failed")
	save("p.pol", `read :- sKeyIs("alice"`)
	waitFor("1 mistake")
	save("p.pol", `read :- sKeyIs("alice").`)
	waitFor("1 passed, 0 failed")
	interrupt()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}
