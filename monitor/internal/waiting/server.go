// SPDX-License-Identifier: BSD-2-Clause

package waiting

import (
	"bytes"
	"os/exec"
	"testing"
)

// Server starts a program that a test uses, and returns when it answers. The program is killed at
// the end of the test, which prints what it has said if it has failed. As [Until], it must be
// called from the goroutine that runs the test.
func Server(t testing.TB, command *exec.Cmd, answers func() bool) {
	t.Helper()
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // its state says how it ended
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", command.Path, said.String())
		}
	})
	Until(t, command.Path+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended: %v", command.Path, command.ProcessState)
		default:
		}
		return answers()
	})
}
