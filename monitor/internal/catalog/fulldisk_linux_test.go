// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() { childTasks["fill"] = fillDisk }

// fillDisk writes until the disk is full and then shows that the state is whole.
func fillDisk(dir string) {
	if err := smallDisk(dir); err != nil {
		fmt.Println("SKIP", err)
		os.Exit(0)
	}
	c, err := Open(dir)
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	value := strings.Repeat("x", 1000)
	for i := 0; ; i++ {
		before := c.State()
		_, err := addFacts(c, fact("c", "r", strconv.Itoa(i)+value))
		if err == nil {
			continue
		}
		switch {
		case !errors.Is(err, ErrDiskFull):
			fmt.Println("not ErrDiskFull:", err)
		case c.State() != before || before.Facts() != i:
			fmt.Println("the state changed")
		default:
			_ = c.Close()
			again, err := Open(dir)
			if err != nil || again.State().Facts() != i {
				fmt.Println("after opening again:", err)
				os.Exit(1)
			}
			fmt.Println("OK after", i)
			os.Exit(0)
		}
		os.Exit(1)
	}
}

// smallDisk mounts a few megabytes of memory on dir, in this process' own mount
// namespace.
func smallDisk(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m")
}

func TestFullDisk(t *testing.T) {
	command := child(t, "fill", t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	output, err := command.Output()
	switch text := strings.TrimSpace(string(output)); {
	case strings.HasPrefix(text, "SKIP") || errors.Is(err, syscall.EPERM):
		t.Skip("this machine lets nobody mount a small disk: ", text, err)
	case err != nil || !strings.HasPrefix(text, "OK"):
		t.Errorf("%s, %v", text, err)
	}
}
