// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const orphaned = 900004 // no process of the machine has it

// startAs starts a shell that forks, as a user.
func startAs(t *testing.T, user uint32) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can start a process of another user")
	}
	task := exec.Command("/bin/sh", "-c", "sleep 1000 & sleep 1000; true")
	task.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if err := task.Start(); err != nil {
		t.Fatal(err)
	}
	return task
}

func noKeeper(int) bool { return false }

func TestEndOrphans(t *testing.T) {
	task := startAs(t, orphaned)
	kept, err := EndOrphans(orphaned, func(pid int) bool { return pid == os.Getpid() })
	if err != nil || kept != 0 {
		t.Errorf("ended %d processes that have a keeper: %v", kept, err)
	}
	if ended, err := EndOrphans(orphaned, noKeeper); err != nil || ended == 0 {
		t.Errorf("ended %d: %v", ended, err)
	}
	// The shell is a zombie now, which does not run.
	if ended, err := EndOrphans(orphaned, noKeeper); err != nil || ended != 0 {
		t.Errorf("ended %d more: %v", ended, err)
	}
	if err := task.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the shell: %v", err)
	}
}

// A number means another user in a container.
func TestProcessesInContainersAreNoOrphans(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can make a PID namespace")
	}
	contained := exec.Command("/bin/sleep", "1000")
	contained.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID, Credential: &syscall.Credential{Uid: orphaned + 3, Gid: orphaned + 3},
	}
	if err := contained.Start(); err != nil {
		t.Fatal(err)
	}
	if ended, err := EndOrphans(orphaned+3, noKeeper); err != nil || ended != 0 {
		t.Errorf("ended %d processes of a container: %v", ended, err)
	}
	if err := contained.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = contained.Wait()
}

// The caller may lack the right to send the signal, as in a container without CAP_KILL.
func TestOrphansThatCannotBeEnded(t *testing.T) {
	const powerless = "SHAI_TEST_POWERLESS"
	if os.Getenv(powerless) != "" {
		ended, err := EndOrphans(orphaned+1, noKeeper)
		if err == nil || !strings.Contains(err.Error(), "operation not permitted") {
			t.Errorf("ended %d: %v", ended, err)
		}
		return
	}
	task := startAs(t, orphaned+1)
	defer func() {
		if _, err := EndOrphans(orphaned+1, noKeeper); err != nil {
			t.Error(err)
		}
		_ = task.Wait()
	}()
	command := exec.Command("/proc/self/exe", "-test.run=^TestOrphansThatCannotBeEnded$")
	command.Env = append(os.Environ(), powerless+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: orphaned + 2, Gid: orphaned + 2}}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
