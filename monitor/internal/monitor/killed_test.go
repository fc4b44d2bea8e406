// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// monitorDirectory names the environment variable that makes this test program a
// monitor of its own, with the options and manifests of a file there.
const monitorDirectory = "SHAI_TEST_MONITOR"

// played is the input of a monitor in a process of its own.
type played struct {
	Options Options
	Request api.ApplyRequest
	Swap    []api.ApplyRequest // applied in turn, for ever, once it serves
}

// playMonitor applies, analyses, starts the front end, reports this, and runs until it is
// killed.
func playMonitor(file string) int {
	err := func() error {
		var given played
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &given); err != nil {
			return err
		}
		given.Options.Logger = slog.New(slog.DiscardHandler)
		m, err := Open(context.Background(), given.Options)
		if err != nil {
			return err
		}
		if _, err := m.Apply(context.Background(), given.Request); err != nil {
			return err
		}
		if _, err := m.Analyze(context.Background(), api.AnalyzeRequest{}, func(api.Progress) {}); err != nil {
			return err
		}
		if _, err := m.StartTask(context.Background(), "probe", "worker"); err != nil {
			return err
		}
		fmt.Println("serving")
		for i := 0; len(given.Swap) > 0; i++ {
			if _, err := m.Apply(context.Background(), given.Swap[i%len(given.Swap)]); err != nil {
				return err
			}
			fmt.Println("swapped")
		}
		select {}
	}()
	fmt.Println(err)
	return 1
}

// startMonitorProcess starts a monitor that can be killed.
func (s *stack) startMonitorProcess(swap ...api.ApplyRequest) (*exec.Cmd, *bufio.Reader) {
	s.t.Helper()
	options := s.options
	options.Logger = nil
	text, err := json.Marshal(played{options, s.sources(), swap})
	s.must(err)
	file := filepath.Join(s.t.TempDir(), "given.json")
	s.must(os.WriteFile(file, text, 0o600))
	process := ofItself(s.t, monitorDirectory+"="+file)
	output, err := process.StdoutPipe()
	s.must(err)
	process.Stderr = os.Stderr
	s.must(process.Start())
	s.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it writes into the test's directories until it has ended
	})
	lines := bufio.NewReader(output)
	if line, _ := lines.ReadString('\n'); line != "serving\n" {
		s.t.Fatalf("the monitor says %q", line)
	}
	return process, lines
}

// writtenBindings counts the logins that are in the files of the audit log, which another
// monitor may be writing.
func (s *stack) writtenBindings() (count int) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.auditDirectory(), "*.jsonl"))
	s.must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		s.must(err)
		count += strings.Count(string(text), `"kind":"binding"`)
	}
	return count
}

// descendants lists every process beneath one, however deep.
func descendants(t *testing.T, of int) []int {
	t.Helper()
	children := map[int][]int{}
	for pid, parent := range parents(t) {
		children[parent] = append(children[parent], pid)
	}
	found := slices.Clone(children[of])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// The monitor is killed while sessions live: no process of any task survives, no request
// is answered any more, and a monitor on the same state continues with the acknowledged
// changes.
func TestMonitorIsKilled(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/private/alice/1.txt")
	s.document("/corpus/friends/bob/1.txt")
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("friends/bob", "friend", "alice")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	process, _ := s.startMonitorProcess()
	alice, bob := s.login("alice", "127.0.1.1"), s.login("bob", "127.0.1.1")
	unbound, err := s.connect("127.0.1.1")
	s.must(err)
	if got := alice.must("native /shai/view"); !strings.HasPrefix(got, "error ") {
		t.Fatalf("the view: %s", got)
	}
	awaitSnapshot(t, s.options.State)
	waiting.Until(t, "both logins are recorded", func() bool { return s.writtenBindings() == 2 })
	family := descendants(t, process.Process.Pid)
	if len(family) < 5 { // keeper, zygote, three workers
		t.Fatalf("processes of the monitor: %v", family)
	}

	s.must(process.Process.Kill())
	_ = process.Wait()
	for _, pid := range family {
		waiting.Until(t, fmt.Sprintf("process %d is gone", pid), func() bool {
			_, lives := parents(t)[pid]
			return !lives
		})
	}
	for _, u := range []*user{alice, bob, unbound} {
		if answer, err := u.say("mode"); err == nil {
			t.Errorf("somebody still answers: %s", answer)
		}
	}

	s.open()
	s.startWorkers()
	again := s.login("alice", "127.0.1.1")
	for _, name := range []string{"/corpus/private/alice/1.txt", "/corpus/friends/bob/1.txt"} {
		if got := again.must(fmt.Sprintf("read %d", s.id(name))); got != "text "+name {
			t.Errorf("after the restart: %s", got)
		}
	}
	if opens := s.interceptions()["open"]; opens != 0 {
		t.Errorf("%d opens took the slow path: the analysis is lost", opens)
	}
	checked, err := audit.Verify(t.Context(), s.auditDirectory(), "")
	if err != nil || checked.Fault != "" {
		t.Errorf("the audit log's chain: %s, %v", checked.Fault, err)
	}
	bindings := 0
	for _, record := range s.records() {
		if record.Kind == audit.Binding && record.Allowed {
			bindings++
		}
	}
	if bindings < 3 {
		t.Errorf("%d bindings are in the log, two of before and one of after are missing", bindings)
	}
}
