// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"shai.dev/monitor/policy"
)

// The test binary runs itself as the process that is killed.
const (
	childTask = "SHAI_CATALOG_CHILD"
	childDir  = "SHAI_CATALOG_DIR"
)

// childTasks are the tasks of the child process. None of them returns.
var childTasks = map[string]func(directory string){"change": changeForever, "swap": swapForever}

func TestMain(m *testing.M) {
	CheckMain()
	if task := childTasks[os.Getenv(childTask)]; task != nil {
		task(os.Getenv(childDir))
	}
	os.Exit(m.Run())
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
			_, err = addFacts(c, blocked, factAt(int64(i), "counter", "at", strconv.Itoa(i)))
		} else {
			_, err = c.AtOnce().ChangeFacts([]policy.Fact{blocked},
				[]policy.Fact{factAt(int64(i), "counter", "at", strconv.Itoa(i))})
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
	if found, _, err := c.RegisterFiles(context.Background(), filepath.Join(root, "data"), nil); err != nil ||
		found != uint64(count) {
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
		if !s.Has(policy.Pattern{Conduit: "counter", Relation: "at",
			Arguments:  []policy.Value{policy.String(strconv.Itoa(i))},
			Positioned: true, Offset: policy.Integer(int64(i))}) {
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
