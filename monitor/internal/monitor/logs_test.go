// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// logged is a log with two entries, written by a monitor that has ended.
func logged(t *testing.T) (options Options, file, text string) {
	t.Helper()
	options = bareOptions(t)
	m := openTyped(t, options)
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	for range 2 {
		entry := accessEntry("bob", document, time.Now())
		if got := bob.writes(logName, entry, 0); got != "" {
			t.Fatal(got)
		}
		text += entry
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return options, filepath.Join(options.Data, logName), text
}

// Wherever a write was interrupted, the next monitor finds a log of whole entries, and the facts
// that it says. What was acknowledged is in both.
func TestLogsAndFactsAgreeAfterACrash(t *testing.T) {
	options, file, text := logged(t)
	first, third := text[:strings.IndexByte(text, '\n')+1], accessEntry("eve", document, time.Now())
	for _, test := range []struct{ name, left, want string }{
		{"before a write", text, text},
		{"after its first byte", text + third[:1], text},
		{"in the middle", text + third[:len(third)/2], text},
		{"before its last byte", text + third[:len(third)-1], text},
		{"blocks without content", text + strings.Repeat("\x00", 4096), text},
		{"between the file and the facts", text + third, text + third},
		{"the same again, then a part", text + third + third[:9], text + third},
		{"a shorter file", text, text},
		{"half of an entry lost", text[:len(text)-9], first},
		{"another of the same length", strings.Replace(first, "bob", "eve", 1),
			strings.Replace(first, "bob", "eve", 1)},
		{"another that is longer", text, text},
		{"all lost", "", ""},
		{"back again", text + third, text + third},
	} {
		if err := os.WriteFile(file, []byte(test.left), 0o640); err != nil {
			t.Fatal(err)
		}
		m := openTyped(t, options)
		t.Log(test.name)
		expectLog(t, m, options, test.want)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expectLog(t, openTyped(t, options), options, "")
}

// A file that is no log any more is left alone. The entries that were acknowledged stay facts, and
// no entry is added.
func TestADamagedLogTakesNoEntry(t *testing.T) {
	options, file, text := logged(t)
	damaged := text + strings.Repeat("not an entry\n", 2000)
	if err := os.WriteFile(file, []byte(damaged), 0o640); err != nil {
		t.Fatal(err)
	}
	m := openTyped(t, options)
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	if got := bob.writes(logName, accessEntry("bob", document, time.Now()), 0); got != "EIO" {
		t.Errorf("an entry is added: %q", got)
	}
	if got := entriesOf(m, logName); got != text {
		t.Errorf("the facts are\n%swant\n%s", got, text)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != damaged {
		t.Errorf("the file has changed: %v", err)
	}
	// Corrected while the monitor runs, it takes entries again.
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	third := accessEntry("bob", document, time.Now())
	if got := bob.writes(logName, third, 0); got != "" {
		t.Errorf("after the correction: %s", got)
	}
	expectLog(t, m, options, text+third)
}

// Entries behind one that was damaged are not taken for the rest of an interrupted write.
func TestEntriesBehindADamagedOneStay(t *testing.T) {
	options, file, text := logged(t)
	for _, damaged := range []string{text[1:], "x" + text[1:], text[:7] + text[8:], "\n" + text} {
		if err := os.WriteFile(file, []byte(damaged), 0o640); err != nil {
			t.Fatal(err)
		}
		m := openTyped(t, options)
		bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
		got := bob.writes(logName, accessEntry("bob", document, time.Now()), 0)
		if got != "EIO" && len(damaged) != len(text) {
			t.Errorf("%q: an entry is added: %q", damaged, got)
		}
		if got := entriesOf(m, logName); !strings.HasPrefix(got, text) {
			t.Errorf("%q: the facts are\n%swant\n%s", damaged, got, text)
		}
		if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), damaged) {
			t.Errorf("%q: the file has changed: %q, %v", damaged, got, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A bundle whose log is no log is refused, and the file stays.
func TestALogHasToBeOne(t *testing.T) {
	options := bareOptions(t)
	file := filepath.Join(options.Data, logName)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	entry := accessEntry("bob", document, time.Now())
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for _, text := range []string{"somebody's notes\n", entry[:20], entry + entry[:20]} {
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := applyText(m, pipelinetest.Typed); err == nil || !strings.Contains(err.Error(), "/log/access is not of type access-log: line ") {
			t.Errorf("%q: %v", text, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("the file has changed: %v", err)
		}
	}
	if err := os.WriteFile(file, []byte(entry), 0o640); err != nil {
		t.Fatal(err)
	}
	applyBare(t, m, pipelinetest.Typed)
	expectLog(t, m, options, entry)
	// Without the type, what it says are no facts any more; with it, they are again.
	kind := m.state().LogType(logName)
	untyped := strings.NewReplacer("      type: access-log\n", "",
		"name: log, arguments: {auditor: carol}", "name: free").Replace(pipelinetest.Typed)
	applyBare(t, m, untyped)
	if m.state().Has(kind.Entries(logName)) {
		t.Error("what a former log says are still facts")
	}
	applyBare(t, m, pipelinetest.Typed)
	expectLog(t, m, options, entry)
}

// Facts about a log come from its file only.
func TestFactsAboutALogComeFromItsFile(t *testing.T) {
	m, _ := typedMonitor(t)
	forged := bareFact(logName, "access", "bob", document)
	if _, err := m.ChangeFacts(t.Context(), api.FactChange{Add: []api.Fact{forged}}); err == nil ||
		!strings.Contains(err.Error(), "the conduit is a log of type access-log") {
		t.Errorf("a fact about the log: %v", err)
	}
	text := strings.Replace(pipelinetest.Typed, "    - {conduit: employees,",
		"    - {conduit: /log/access, says: access, tuples: [[bob, /open/1.txt, 2020-01-01T00:00:00Z]]}\n    - {conduit: employees,", 1)
	if err := applyText(m, text); err == nil ||
		!strings.Contains(err.Error(), "the conduit is a log of type access-log") {
		t.Errorf("a manifest with a fact about the log: %v", err)
	}
}

// Two tasks that add at the same time get whole entries, one after the other.
func TestEntriesAreAddedOneAfterTheOther(t *testing.T) {
	m, options := typedMonitor(t)
	sessions := typedSessions(t, m, wire.ModeShai, "bob", "eve")
	const each = 20
	supervisor := sessions[0].supervisor
	for i := range each {
		for at, who := range []string{"bob", "eve"} {
			entry := accessEntry(who, document, time.Unix(int64(i), 0))
			record, err := wire.Encode(uint64(i), wire.Write{Conduit: logName, Content: []byte(entry + entry)})
			if err != nil {
				t.Fatal(err)
			}
			supervisor.Sessions.Receive(supervision.AskRecord{Session: sessions[at].number, Record: record})
		}
	}
	waiting.Until(t, "all are answered", func() bool {
		answers := 0
		for _, record := range supervisor.Told() {
			if relay, is := record.(supervision.Relay); is {
				_, answer, err := wire.Decode(relay.Record, wire.TypeWritten)
				if err != nil || answer.(wire.Written).Status != 0 {
					t.Fatalf("%+v, %v", answer, err)
				}
				answers++
			}
		}
		return answers == 2*each
	})
	text, err := os.ReadFile(filepath.Join(options.Data, logName))
	if err != nil {
		t.Fatal(err)
	}
	expectLog(t, m, options, string(text))
	lines := strings.SplitAfter(string(text), "\n")
	if len(lines) != 4*each+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for i := 0; i+1 < len(lines); i += 2 {
		if lines[i] != lines[i+1] {
			t.Errorf("lines %d and %d of one write are apart", i, i+1)
		}
	}
}

// By no other name, and by no open, a task writes a typed conduit; it may write its untyped twin.
func TestTypedConduitsAreWrittenByTheMonitorOnly(t *testing.T) {
	m, options := typedMonitor(t)
	for _, name := range []string{"/notes/all", "/plain/all"} {
		file := filepath.Join(options.Data, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("f()\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_TRUNC,
			unix.O_WRONLY | unix.O_APPEND} {
			if got := collectorOpens(t, m, name, flags); got != (name == "/plain/all") {
				t.Errorf("%s is opened with flags %#x: %v", name, flags, got)
			}
		}
		if !collectorOpens(t, m, name, unix.O_RDONLY) {
			t.Errorf("%s is not opened for reading", name)
		}
	}
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	log := filepath.Join(options.Data, logName)
	entry := accessEntry("bob", document, time.Now())
	for what, spoil := range map[string]func() error{
		"a hard link": func() error {
			if err := os.WriteFile(log, nil, 0o640); err != nil {
				return err
			}
			return os.Link(log, log+".second")
		},
		"a symbolic link":   func() error { return os.Symlink(filepath.Join(options.Data, document), log) },
		"a link to nowhere": func() error { return os.Symlink(filepath.Join(options.Data, "elsewhere"), log) },
		"a named pipe":      func() error { return unix.Mkfifo(log, 0o640) },
		"a directory":       func() error { return os.Mkdir(log, 0o750) },
		"a linked directory": func() error {
			return os.Rename(filepath.Join(options.Data, "other"), filepath.Dir(log))
		},
	} {
		if err := os.RemoveAll(filepath.Dir(log)); err != nil {
			t.Fatal(err)
		}
		if what == "a linked directory" {
			err := os.Symlink(filepath.Join(options.Data, "open"), filepath.Join(options.Data, "other"))
			if err != nil {
				t.Fatal(err)
			}
		} else if err := os.Mkdir(filepath.Dir(log), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got := bob.writes(logName, entry, 0); got != "EIO" {
			t.Errorf("%s: %q", what, got)
		}
		if got := entriesOf(m, logName); got != "" {
			t.Errorf("%s: the facts are %s", what, got)
		}
	}
	if text, err := os.ReadFile(filepath.Join(options.Data, document)); err != nil || string(text) != document {
		t.Errorf("the document is %q, %v", text, err)
	}
	if err := os.RemoveAll(filepath.Dir(log)); err != nil {
		t.Fatal(err)
	}
	if got := bob.writes(logName, entry, 0); got != "" {
		t.Errorf("without them: %s", got)
	}
	expectLog(t, m, options, entry)
}

// loggingDirectory names the environment variable that makes a test add to a log until it is killed.
const loggingDirectory = "SHAI_TEST_LOGGING"

// A monitor that is killed while a task adds to a log loses no entry that was acknowledged, and
// its successor finds whole entries, all of which are facts.
func TestLogsSurviveKills(t *testing.T) {
	if root := os.Getenv(loggingDirectory); root != "" {
		addUntilKilled(t, root)
		return
	}
	options := bareOptions(t)
	root := filepath.Dir(options.State)
	for round := range 6 {
		child := exec.Command(os.Args[0], "-test.run=^TestLogsSurviveKills$")
		child.Env = append(os.Environ(), loggingDirectory+"="+root)
		output, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := ""
		lines := bufio.NewReader(output)
		for count := 0; count < 3+round; {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the monitor has ended: %v", err)
			}
			if strings.HasPrefix(line, "access(") {
				acknowledged, count = acknowledged+line, count+1
			}
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		m := openTyped(t, options)
		text, err := os.ReadFile(filepath.Join(options.Data, logName))
		if err != nil {
			t.Fatal(err)
		}
		expectLog(t, m, options, string(text))
		if !strings.Contains(string(text), acknowledged) || !strings.HasSuffix(string(text), "\n") {
			t.Errorf("the log is\n%sand has to contain\n%s", text, acknowledged)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func addUntilKilled(t *testing.T, root string) {
	t.Helper()
	options := bareOptions(t)
	options.Data, options.State, options.Library = filepath.Join(root, "data"), filepath.Join(root, "state"), root
	options.TaskIDs = taskUsers(root)
	bob := typedSessions(t, openTyped(t, options), wire.ModeShai, "bob")[0]
	for {
		entry := accessEntry("bob", document, time.Now())
		if got := bob.writes(logName, entry, 0); got != "" {
			t.Fatal(got)
		}
		fmt.Print(entry)
	}
}
