// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/policy"
)

// The test binary runs itself as the process that is killed.
const (
	childTask = "SHAI_CATALOG_CHILD"
	childDir  = "SHAI_CATALOG_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childTask) {
	case "change":
		changeForever(os.Getenv(childDir))
	case "swap":
		swapForever(os.Getenv(childDir))
	case "fill":
		fillDisk(os.Getenv(childDir))
	default:
		os.Exit(m.Run())
	}
}

// changeForever acknowledges on standard output each change that is durable.
func changeForever(root string) {
	c, err := Open(filepath.Join(root, "state"))
	if err == nil {
		_, err = c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
	}
	for i := 0; err == nil; i++ {
		name := fmt.Sprintf("/corpus/public/%d", i%50)
		blocked := fact("blacklist/de", "blocked", name)
		if i/50%2 == 0 {
			_, err = c.AddFacts(blocked, fact("counter", "at", strconv.Itoa(i)))
		} else {
			_, err = c.ChangeFacts([]policy.Fact{blocked}, []policy.Fact{fact("counter", "at", strconv.Itoa(i))})
		}
		fmt.Println(i)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func child(t *testing.T, task, dir string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childTask+"="+task, childDir+"="+dir)
	command.Stderr = os.Stderr
	return command
}

func prepareDocuments(t *testing.T, root string, count int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "data/corpus/public"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := open(t, filepath.Join(root, "state"))
	if _, err := c.Apply(testBundle("1")); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		name := fmt.Sprintf("/corpus/public/%d", i)
		if err := os.WriteFile(filepath.Join(root, "data", name), []byte("document "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, _, err := c.RegisterFiles(context.Background(), filepath.Join(root, "data"), nil); err != nil || found != uint64(count) {
		t.Fatalf("found %d documents, %v", found, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	root := t.TempDir()
	prepareDocuments(t, root, 50)
	for round := range 8 {
		command := child(t, "change", root)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("child said %q", lines.Text())
			}
			if acknowledged == 15+round*13 {
				_ = command.Process.Signal(syscall.SIGKILL)
			}
		}
		_ = command.Wait()
		if acknowledged < 15 {
			t.Fatalf("the child acknowledged only %d changes", acknowledged)
		}
		checkSurvivors(t, root, acknowledged)
	}
}

func checkSurvivors(t *testing.T, root string, acknowledged int) {
	t.Helper()
	c, err := Open(filepath.Join(root, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := c.State()
	for i := range acknowledged + 1 {
		if !s.Has(policy.Pattern{Conduit: "counter", Relation: "at", Arguments: []policy.Value{policy.String(strconv.Itoa(i))}}) {
			t.Errorf("change %d of %d acknowledged is lost", i, acknowledged)
		}
	}
	v, err := c.AttachView(filepath.Join(root, "data"), filepath.Join(root, "view"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Verify(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	checkView(t, v)
}

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
		_, err := c.AddFacts(fact("c", "r", strconv.Itoa(i)+value))
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
