// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func registry(t *testing.T, first, last uint32) Registry {
	t.Helper()
	return Registry{Path: filepath.Join(t.TempDir(), "lib/shai/task-ids.json"), Range: Range{first, last}}
}

func must(t *testing.T, r Registry, data, pipeline string) uint32 {
	t.Helper()
	numbers, err := r.Of(data, pipeline)
	if err != nil {
		t.Fatal(err)
	}
	return numbers.Pipeline
}

func TestAPipelineKeepsItsNumber(t *testing.T) {
	r, one, two := registry(t, 70000, 70009), t.TempDir(), t.TempDir()
	first := must(t, r, one, "a")
	for _, other := range []uint32{must(t, r, one, "b"), must(t, r, two, "a")} {
		if other == first {
			t.Errorf("two pipelines have the number %d", other)
		}
	}
	if again := must(t, Registry{Path: r.Path, Range: r.Range}, one, "a"); again != first {
		t.Errorf("the number was %d and is %d", first, again)
	}
}

// Each task has a number of its own, which it keeps, also when others come and go.
func TestATaskKeepsItsNumber(t *testing.T) {
	r, data := registry(t, 70000, 70009), t.TempDir()
	before, err := r.Of(data, "p", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	after, err := r.Of(data, "p", "c", "b")
	if err != nil {
		t.Fatal(err)
	}
	if after.Pipeline != before.Pipeline || after.Tasks["b"] != before.Tasks["b"] {
		t.Errorf("the numbers were %v and are %v", before, after)
	}
	given := []uint32{before.Pipeline, before.Tasks["a"], before.Tasks["b"], after.Tasks["c"]}
	slices.Sort(given)
	if unique := slices.Compact(slices.Clone(given)); len(unique) != 4 {
		t.Errorf("a pipeline and three tasks have %v", given)
	}
	of, err := r.Pipelines(data)
	if err != nil || len(of) != 4 {
		t.Errorf("the pipelines by number are %v, %v", of, err)
	}
	for _, id := range given {
		if of[id] != "p" {
			t.Errorf("%d is of pipeline %q", id, of[id])
		}
	}
}

// The registry of an earlier version has pipelines only. They keep their numbers, since their
// files belong to those.
func TestRegistryOfAnEarlierVersion(t *testing.T) {
	r, data := registry(t, 70000, 70009), t.TempDir()
	text := fmt.Sprintf(`[{"id": 70004, "data": %q, "pipeline": "p"}]`, data)
	err := os.MkdirAll(filepath.Dir(r.Path), 0o755)
	if err == nil {
		err = os.WriteFile(r.Path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := r.Of(data, "p", "a")
	if err != nil || numbers.Pipeline != 70004 || numbers.Tasks["a"] != 70005 {
		t.Errorf("the numbers are %v: %v", numbers, err)
	}
	if info, err := os.Stat(r.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others read which pipelines and tasks there are: %v, %v", info.Mode(), err)
	}
}

// A pipeline whose tasks do not all get a number gets none: it would take what is left.
func TestNumbersAreGivenTogether(t *testing.T) {
	r, data := registry(t, 900000, 900002), t.TempDir()
	if numbers, err := r.Of(data, "p", "a", "b", "c"); err == nil || !strings.Contains(err.Error(), "--task-ids") {
		t.Errorf("three numbers are enough for %v: %v", numbers, err)
	}
	if _, err := r.Of(data, "p", "a", "b"); err != nil {
		t.Error(err)
	}
}

// No pipeline and no task is somebody of this machine.
func TestNumbersOfAccountsAreNotGiven(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("the machine has no account to try with: %v", err)
	}
	number, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	taken := uint32(number)
	r, data := registry(t, taken-1, taken+1), t.TempDir()
	numbers, err := r.Of(data, "p", "a")
	if err != nil || numbers.Pipeline != taken-1 || numbers.Tasks["a"] != taken+1 {
		t.Errorf("around user %d the numbers are %v: %v", taken, numbers, err)
	}
}

// A number is free again once nothing is left of the files that may have it.
func TestNumbersAreNotReusedWhileThereAreFiles(t *testing.T) {
	r, kept := registry(t, 900000, 900001), t.TempDir() // no process of the machine has them
	gone := filepath.Join(kept, "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	first, second := must(t, r, kept, "a"), must(t, r, gone, "a")
	if _, err := r.Of(kept, "b"); err == nil || !strings.Contains(err.Error(), "all of 900000-900001 are taken") {
		t.Errorf("a third pipeline has a number: %v", err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if id := must(t, r, kept, "b"); id != second {
		t.Errorf("the number is %d, want %d", id, second)
	}
	if id := must(t, r, kept, "a"); id != first {
		t.Errorf("the first pipeline's number was %d and is %d", first, id)
	}
}

// A data directory that was moved is gone, but its tasks may still run.
func TestNumbersAreNotReusedWhileProcessesHaveThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can start a process of another user")
	}
	r, kept := registry(t, 900002, 900003), t.TempDir()
	data := filepath.Join(kept, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, r, kept, "a")
	moved := must(t, r, data, "a")
	task := exec.Command("/bin/cat") // until its input ends
	task.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: moved, Gid: moved}}
	input, err := task.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data, data+"2"); err != nil {
		t.Error(err)
	}
	if numbers, err := r.Of(kept, "b"); err == nil {
		t.Errorf("another pipeline has %v, which a process has", numbers)
	}
	if err := errors.Join(input.Close(), task.Wait()); err != nil {
		t.Fatal(err)
	}
	if id := must(t, r, kept, "b"); id != moved {
		t.Errorf("the number is %d, want %d, which nobody has any more", id, moved)
	}
}

func TestDataDirectories(t *testing.T) {
	r, one, two := registry(t, 900000, 900009), t.TempDir(), filepath.Join(t.TempDir(), "missing")
	if list, err := r.DataDirectories(); err != nil || len(list) > 0 {
		t.Errorf("without a registry: %v, %v", list, err)
	}
	must(t, r, one, "a")
	must(t, r, two, "a")
	must(t, r, one, "b")
	if list, err := r.DataDirectories(); err != nil || !slices.Equal(list, []string{one}) {
		t.Errorf("%v, %v, want %s", list, err, one)
	}
	if err := os.WriteFile(r.Path, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := r.DataDirectories(); err == nil {
		t.Errorf("a damaged registry lists %v", list)
	}
}

// What another monitor records is known at the next question, and a damaged registry is an error.
func TestRecorded(t *testing.T) {
	r, one, missing := registry(t, 900000, 900009), t.TempDir(), filepath.Join(t.TempDir(), "missing")
	recorded := Recorded{Registry: r}
	ask := func(want ...string) {
		t.Helper()
		for range 2 {
			if list, err := recorded.DataDirectories(); err != nil || !slices.Equal(list, want) {
				t.Errorf("%v, %v, want %v", list, err, want)
			}
		}
	}
	old := func() { // as if it had been written a while ago
		t.Helper()
		if err := os.Chtimes(r.Path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	must(t, r, one, "a")
	ask(one)
	old()
	ask(one)
	must(t, r, missing, "a")
	ask(one, missing)
	old()
	ask(one, missing)
	// Nothing is read while nothing has changed.
	before, err := os.Stat(r.Path)
	if err != nil || recorded.read == nil || !isUnchanged(recorded.read, before) {
		t.Errorf("%v; %v is kept", err, recorded.read)
	}
	if err := os.WriteFile(r.Path, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := recorded.DataDirectories(); err == nil {
		t.Errorf("a damaged registry lists %v", list)
	}
	if err := os.Remove(r.Path); err != nil {
		t.Fatal(err)
	}
	ask()
}

func TestMonitorsShareTheRegistry(t *testing.T) {
	r, data := registry(t, 70000, 70999), t.TempDir()
	var group sync.WaitGroup
	var mutex sync.Mutex
	owner := map[uint32]string{}
	for i := range 40 {
		group.Go(func() {
			pipeline := fmt.Sprint("p", i%20)
			numbers, err := Registry{Path: r.Path, Range: r.Range}.Of(data, pipeline, "a", "b")
			mutex.Lock()
			defer mutex.Unlock()
			for name, id := range map[string]uint32{
				pipeline: numbers.Pipeline, pipeline + "/a": numbers.Tasks["a"], pipeline + "/b": numbers.Tasks["b"],
			} {
				if err != nil || owner[id] != "" && owner[id] != name {
					t.Errorf("%s and %s have %d: %v", name, owner[id], id, err)
				}
				owner[id] = name
			}
		})
	}
	group.Wait()
	if len(owner) != 60 {
		t.Errorf("20 pipelines with two tasks each have %d numbers", len(owner))
	}
}

func TestDamagedRegistryGivesNothing(t *testing.T) {
	r := registry(t, 70000, 70009)
	must(t, r, t.TempDir(), "a")
	if err := os.WriteFile(r.Path, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if numbers, err := r.Of(t.TempDir(), "b"); err == nil {
		t.Errorf("a damaged registry gives %v", numbers)
	}
}

func TestRanges(t *testing.T) {
	for r, want := range map[Range]string{
		Default: "", {1000, 1000}: "", {70000, 70000}: "", {5, 3}: "begins after its end",
		{0, 80000}:  "users of the system",
		{999, 2000}: "users of the system", {60000, 70000}: "nobody", {65534, 65534}: "nobody",
		{70000, ^uint32(0)}: "nobody",
	} {
		if err := r.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", r, err, want)
		}
	}
}
