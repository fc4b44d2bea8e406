// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
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
	const other, unused = orphaned + 6, orphaned + 7
	users := []uint32{orphaned, unused, other}
	tasks := []*exec.Cmd{startAs(t, orphaned), startAs(t, other)}
	kept, err := EndOrphans(users, func(pid int) bool { return pid == os.Getpid() })
	if err != nil || kept[orphaned]+kept[other] != 0 {
		t.Errorf("ended %v processes that have a keeper: %v", kept, err)
	}
	ended, err := EndOrphans(users, noKeeper)
	if err != nil || ended[orphaned] == 0 || ended[other] == 0 || ended[unused] != 0 {
		t.Errorf("ended %v: %v", ended, err)
	}
	// The shells are zombies now, which do not run.
	if ended, err := EndOrphans(users, noKeeper); err != nil || ended[orphaned]+ended[other] != 0 {
		t.Errorf("ended %v more: %v", ended, err)
	}
	for _, task := range tasks {
		if err := task.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the shell: %v", err)
		}
	}
}

// compiled compiles a program of testdata.
func compiled(t *testing.T, name string) string {
	t.Helper()
	directory, err := os.MkdirTemp("", name) // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	program := filepath.Join(directory, name)
	compile := exec.Command("gcc", "-O1", "-Wall", "-Werror", "-o", program, "testdata/"+name+".c")
	output, err := compile.CombinedOutput()
	if err == nil {
		err = os.Chmod(directory, 0o755)
	}
	if err != nil {
		t.Fatalf("compile: %v %s", err, output)
	}
	return program
}

// A list may never show a process whose child goes on in its place.
func TestEndOrphansThatSucceedEachOther(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can start a process of another user")
	}
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: orphaned + 4, Gid: orphaned + 4}}
	open, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	first := exec.Command(compiled(t, "successors"))
	first.SysProcAttr, first.Stdout = as, inherited
	err = first.Run()
	inherited.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EndOrphans([]uint32{orphaned + 4}, noKeeper); err != nil {
		t.Error(err)
	}
	if err := open.SetReadDeadline(time.Now().Add(waiting.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // until the last has ended
		t.Errorf("the processes run on: %v", err)
		last := exec.Command("/bin/sh", "-c", "kill -9 -1")
		last.SysProcAttr = as
		_ = last.Run()
	}
}

// The monitor is not to take the orphans' place as the one that is killed: its thread must not be a process of
// their user, to which they may send signals.
func TestOrphansCannotKillTheirEnder(t *testing.T) {
	const (
		program = "SHAI_TEST_ASSASSIN"
		user    = orphaned + 5
		rounds  = 5
	)
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if os.Getenv(program) == "" {
		if os.Geteuid() != 0 {
			t.Skip("only the superuser can start a process of another user")
		}
		ender := exec.Command("/proc/self/exe", "-test.run=^TestOrphansCannotKillTheirEnder$")
		ender.Env = append(os.Environ(), program+"="+compiled(t, "assassin"))
		if output, err := ender.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		last := exec.Command("/bin/sh", "-c", "kill -9 -1")
		last.SysProcAttr = as
		_ = last.Run()
		return
	}
	for range rounds {
		assassin := exec.Command(os.Getenv(program), strconv.Itoa(os.Getpid()))
		assassin.SysProcAttr = as
		output, err := assassin.StdoutPipe()
		if err == nil {
			err = assassin.Start()
		}
		if err == nil {
			_, err = output.Read(make([]byte, 8)) // ready
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := EndOrphans([]uint32{user}, noKeeper); err != nil {
			t.Error(err)
		}
		if err := assassin.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the assassin: %v", err)
		}
	}
}

// A number means another user in a container.
func TestProcessesInContainersAreNoOrphans(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can make a PID namespace")
	}
	contained := exec.Command("/bin/cat")
	contained.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID, Credential: &syscall.Credential{Uid: orphaned + 3, Gid: orphaned + 3},
	}
	input, err := contained.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := contained.Start(); err != nil {
		t.Fatal(err)
	}
	if ended, err := EndOrphans([]uint32{orphaned + 3}, noKeeper); err != nil || ended[orphaned+3] != 0 {
		t.Errorf("ended %v processes of a container: %v", ended, err)
	}
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if err := contained.Wait(); err != nil { // it ends by itself, unless it was killed before
		t.Errorf("the process of a container: %v", err)
	}
}

// The caller may lack the right to send the signal, as in a container without CAP_KILL.
func TestOrphansThatCannotBeEnded(t *testing.T) {
	const powerless = "SHAI_TEST_POWERLESS"
	if os.Getenv(powerless) != "" {
		ended, err := EndOrphans([]uint32{orphaned + 1}, noKeeper)
		if err == nil || !strings.Contains(err.Error(), "operation not permitted") {
			t.Errorf("ended %v: %v", ended, err)
		}
		return
	}
	task := startAs(t, orphaned+1)
	defer func() {
		if _, err := EndOrphans([]uint32{orphaned + 1}, noKeeper); err != nil {
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

// Who begins after others have ended finds nothing of them. Processes that are not meant are
// not waited for.
func TestAwaitEnd(t *testing.T) {
	task := exec.Command("/bin/cat")
	input, err := task.StdinPipe()
	if err == nil {
		err = task.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = task.Wait() }()
	defer input.Close()
	pidfd, err := unix.PidfdOpen(task.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	err = AwaitEnd(func(int) bool { return false })
	if ended, failure := hasEnded(pidfd, 0); err != nil || failure != nil || ended {
		t.Fatalf("ended %v without a reason: %v, %v", ended, err, failure)
	}
	err = AwaitEnd(func(pid int) bool {
		if pid == task.Process.Pid {
			_ = input.Close() // it begins to end
		}
		return pid == task.Process.Pid
	})
	if ended, failure := hasEnded(pidfd, 0); err != nil || failure != nil || !ended {
		t.Errorf("ended %v: %v, %v", ended, err, failure)
	}
}
