// SPDX-License-Identifier: BSD-2-Clause

package directory

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// holdVariable makes the test program hold the lock of the directory that it
// names, until standard input ends: a lock has no effect inside one process.
const holdVariable = "TEST_HOLD"

func TestMain(m *testing.M) {
	if d := os.Getenv(holdVariable); d != "" {
		_, err := Directory(d).Acquire()
		fmt.Println(err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// hold lets another process take the lock, and returns how to end it.
func hold(t *testing.T, d Directory) (*os.Process, func()) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), holdVariable+"="+string(d))
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		input.Close()
		_ = command.Wait() // also of one that was killed
	}
	t.Cleanup(end)
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("the other process could not take the lock: %q, %v", line, err)
	}
	return command.Process, end
}

func TestLockNamesItsHolder(t *testing.T) {
	d := Directory(t.TempDir())
	if process, err := d.Holder(); err != nil || process != 0 {
		t.Errorf("nobody has been there, but the holder is %d (%v)", process, err)
	}
	other, end := hold(t, d)
	if process, err := d.Holder(); err != nil || process != other.Pid {
		t.Errorf("the holder is %d (%v), want %d", process, err, other.Pid)
	}
	_, err := d.Acquire()
	if held := (*HeldError)(nil); !errors.As(err, &held) || held.Process != other.Pid {
		t.Errorf("taking a lock that is held gives %v, want a HeldError with process %d", err, other.Pid)
	}
	end()
	lock, err := d.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestLockGoesWithAKilledProcess(t *testing.T) {
	d := Directory(t.TempDir())
	other, end := hold(t, d)
	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	end()
	if process, err := d.Holder(); err != nil || process != 0 {
		t.Errorf("the holder was killed, but is %d (%v)", process, err)
	}
}
