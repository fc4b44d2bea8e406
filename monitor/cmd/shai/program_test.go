// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
	"shai.dev/monitor/internal/sandbox"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print into the transcripts")

// runsMain is the environment variable that makes the tests' program shai.
const runsMain = "SHAI_TEST_MAIN"

func TestMain(m *testing.M) {
	sandbox.LaunchMain()
	catalog.CheckMain()
	if os.Getenv(runsMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestTranscripts runs the commands of testdata/transcripts against a fake monitor on
// a real socket, and compares what they print. A transcript is commands, each after
// "$ ", and their output; "| " marks stderr and "exit" a code other than 0.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(text), got); diff != "" && !*rewrite {
				t.Errorf("%s (run with -rewrite to accept):\n%s", file, diff)
			}
		})
	}
}

// play runs a transcript's commands and renders it again. A line "// enforcement none"
// makes the machine one that cannot confine.
func play(t *testing.T, transcript string) string {
	service := new(apitest.Service)
	log := apitest.Log(t)
	handler := &api.Handler{Service: service, Audit: log, Metrics: apitest.Metrics()}
	socket, _ := apitest.Serve(t, handler, api.Endpoints{})
	enforcement := "full"
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "//"):
			fmt.Fprintf(&out, "\n%s\n", line)
			if rest, ok := strings.CutPrefix(line, "// enforcement "); ok {
				enforcement = rest
			}
		case strings.HasPrefix(line, "$ shai"):
			if out.Len() > 0 && !strings.HasPrefix(lastLine(out.String()), "//") {
				out.WriteByte('\n')
			}
			fmt.Fprintln(&out, line)
			out.WriteString(execute(t, strings.Fields(line)[2:], socket, enforcement))
		}
	}
	return out.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

// volatile lists the parts of the output that differ from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`), "<time>"},
	{regexp.MustCompile(`"time": "20[^"]*"`), `"time": "<time>"`},
	{regexp.MustCompile(`"seconds": [0-9.]+`), `"seconds": <seconds>`},
	{regexp.MustCompile(`\d+ days\b`), "<days>"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `), "<time> "},
	{regexp.MustCompile(`[0-9a-f]{64}`), "<hash>"},
	{regexp.MustCompile(`(?m)^(pipeline (?:diary|notes), .*), \d[0-9.]*[nµm]?s$`), "$1, <duration>"}, // of a real analysis
	{regexp.MustCompile(`go1\.\S+, \w+/\w+`), "<go>"},
}

// execute runs one command. "< FILE" at its end is its standard input.
func execute(t *testing.T, words []string, socket, enforcement string) string {
	t.Helper()
	var stdin io.Reader = strings.NewReader("")
	if n := len(words); n > 2 && words[n-2] == "<" {
		text, err := os.ReadFile(words[n-1])
		if err != nil {
			t.Fatal(err)
		}
		stdin, words = bytes.NewReader(text), words[:n-2]
	}
	var stdout, stderr strings.Builder
	p := &program{
		stdin: stdin, stdout: &stdout, stderr: &stderr,
		environment: func(name string) string { return map[string]string{"SHAI_SOCKET": socket}[name] },
		probe:       func() (sandbox.Report, error) { return apitest.Machine(enforcement), nil },
		monitor:     func(context.Context, monitor.Options) error { return nil },
	}
	code := p.run(context.Background(), words)
	text := stdout.String()
	for line := range strings.Lines(stderr.String()) {
		text += "| " + line
	}
	if code != exitOK {
		text += fmt.Sprintf("exit %d\n", code)
	}
	if socket != "" {
		text = strings.ReplaceAll(text, socket, "<socket>")
	}
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.stands)
	}
	return text
}

// Every command has help with an example, and none panics without arguments.
func TestEveryCommandHasHelp(t *testing.T) {
	p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		environment: func(string) string { return "" }}
	commands := p.root().Commands()
	for len(commands) > 0 {
		command := commands[0]
		commands = append(commands[1:], command.Commands()...)
		if command.Short == "" || !command.HasSubCommands() && command.Example == "" {
			t.Errorf("%s: short %q, example %q", command.CommandPath(), command.Short, command.Example)
		}
		if strings.HasSuffix(command.Short, ".") {
			t.Errorf("%s: the short help ends in a full stop", command.CommandPath())
		}
	}
}

func TestFollowPrintsUntilInterrupted(t *testing.T) {
	for _, output := range []string{"text", "json", "yaml"} {
		t.Run(output, func(t *testing.T) {
			socket, _ := apitest.Serve(t, &api.Handler{Service: new(apitest.Service), Audit: apitest.Log(t)},
				api.Endpoints{})
			ctx, interrupt := context.WithCancel(context.Background())
			seen := &watcher{want: "no read clause holds", found: interrupt}
			p := &program{stdin: strings.NewReader(""), stdout: seen, stderr: io.Discard,
				environment: func(string) string { return socket }}
			if code := p.run(ctx, []string{"audit", "--follow", "--output", output}); code != exitOK {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// watcher calls found once a text was written.
type watcher struct {
	text  strings.Builder
	want  string
	found func()
}

func (w *watcher) Write(p []byte) (int, error) {
	w.text.Write(p)
	if strings.Contains(w.text.String(), w.want) {
		w.found()
	}
	return len(p), nil
}

func TestVerifyFindsAFault(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(audit.Options{Directory: directory})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		log.Append(audit.Event{Kind: audit.Session, Principal: "alice"})
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if got := execute(t, []string{"audit", "verify", directory}, "",
		""); got != "3 records in 1 file: the chain is complete\n" {
		t.Error(got)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS(directory)); err != nil {
		t.Fatal(err)
	}
	if got := execute(t, []string{"audit", "verify", elsewhere, "--audit-key", directory + ".key"}, "",
		""); got != "3 records in 1 file: the chain is complete\n" {
		t.Error(got)
	}
	if got := execute(t, []string{"audit", "verify", elsewhere}, "", ""); !strings.Contains(got,
		"give the key's file with --audit-key") {
		t.Error(got)
	}
	file := filepath.Join(directory, "audit-00000000000000000001.jsonl")
	text, _ := os.ReadFile(file)
	if err := os.WriteFile(file, bytes.Replace(text, []byte("alice"), []byte("mallo"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := execute(t, []string{"audit", "verify", directory}, "", ""); !strings.HasPrefix(got,
		"correct records: 0, then: audit-00000000000000000001.jsonl:1: record 1: the record is altered") ||
		!strings.HasSuffix(got, "exit 1\n") {
		t.Error(got)
	}
}

func TestTerminalIsNotCommandedByNames(t *testing.T) {
	var out strings.Builder
	if err := printRecord(&out, audit.Record{Event: audit.Event{Kind: audit.Denial,
		Conduit: "/a\x1b[2J\nforged\u009b"}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\u009b") {
		t.Errorf("%q", got)
	}
}
