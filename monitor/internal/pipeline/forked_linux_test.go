// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package pipeline

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The sandbox does not allow a worker to fork. If it did, the monitor would give the new
// process no session.
func TestOnlyTheZygoteMakesWorkers(t *testing.T) {
	worker := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	output, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	var forked int
	if _, err := fmt.Fscan(output, &forked); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(forked, syscall.SIGKILL)
		_ = worker.Wait()
	}()
	if err := forkedBy(os.Getpid(), worker.Process.Pid); err != nil {
		t.Errorf("a worker: %v", err)
	}
	if err := forkedBy(os.Getpid(), forked); err == nil {
		t.Error("what a worker has forked passes for a worker")
	}
}
