// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// The monitor serves, and stops in order, when nobody reads its messages any more.
func TestMonitorWithoutReaderOfItsMessages(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"data", "lib"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "lib", "libshai.so"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reader, messages, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer messages.Close()
	socket := filepath.Join(root, "s")
	command := exec.Command(os.Args[0], "monitor", "--data", root+"/data", "--state", root+"/state",
		"--socket", socket, "--library", root+"/lib", "--task-id-registry", root+"/ids.json")
	command.Env = append(os.Environ(), runsMain+"=1")
	command.Stderr = messages
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	// It has written that it is ready before it answers.
	waiting.Until(t, "the monitor answers or ends", func() bool {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			connection.Close()
		}
		return err == nil || len(ended) > 0
	})
	if len(ended) == 0 {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatalf("the monitor ended with %v", err)
	}
}
