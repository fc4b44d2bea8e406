// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit/records"
	"shai.dev/monitor/internal/reading"
)

const actsAs = "SHAI_TEST_KUBECTL"

// This program acts as the kubectl of a cluster in which a member answers at once.
func TestMain(m *testing.M) {
	if directory := os.Getenv(actsAs); directory != "" {
		if err := answerAs(directory, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answerAs does what kubectl is asked for. Objects are files of the directory.
func answerAs(directory string, arguments []string) error {
	switch path := filepath.Join(directory, "object"); arguments[0] {
	case "auth":
		fmt.Println(`{"status": {"userInfo": {"username": "olga"}}}`)
	case "create":
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		var made struct {
			Spec struct {
				User      string
				PublicKey []byte
				question
			}
		}
		if err := json.Unmarshal(text, &made); err != nil {
			return err
		}
		if made.Spec.User != "olga" {
			return fmt.Errorf("the user is %q", made.Spec.User)
		}
		sealed, err := reading.Seal(made.Spec.PublicKey, pageOf(made.Spec.question))
		if err != nil {
			return err
		}
		status := map[string]any{"member": "m-0", "sealed": sealed, "completionTime": "2026-03-01T12:00:00Z",
			"conditions": []condition{{Type: "Succeeded", Status: "True"}}}
		found, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		return os.WriteFile(path, found, 0o600)
	case "get":
		text, err := os.ReadFile(path)
		fmt.Println(string(text))
		return err
	case "delete":
		return os.Remove(path)
	}
	return nil
}

// pageOf answers from a log of the lines 0 to 9, and an audit log of the records 1 to 10: three a page.
func pageOf(asked question) reading.Answer {
	if asked.Audit != nil {
		end := uint64(11)
		if asked.Audit.Before > 0 {
			end = asked.Audit.Before
		}
		begin := max(1, int64(end)-3)
		if asked.Audit.Limit < 3 {
			begin = int64(end) - int64(asked.Audit.Limit)
		}
		page := &reading.AuditPage{Fault: "line 3"}
		for number := begin; number < int64(end); number++ {
			text, _ := json.Marshal(records.Record{Sequence: uint64(number)})
			page.Records = append(page.Records, text)
		}
		if begin > 1 {
			page.Before = uint64(begin)
		}
		return reading.Answer{Audit: page}
	}
	end := 10
	if asked.Log.Before != "" {
		end, _ = strconv.Atoi(asked.Log.Before)
	}
	page := &reading.LogPage{Label: "none"}
	begin := max(0, end-3)
	for line := begin; line < end; line++ {
		page.Text = fmt.Appendf(page.Text, "line %d\n", line)
	}
	if begin > 0 {
		page.Before = strconv.Itoa(begin)
	}
	return reading.Answer{Log: page}
}

// run runs the plugin with this program as its kubectl.
func run(t *testing.T, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	t.Setenv(actsAs, directory)
	var out, errors strings.Builder
	p := &program{stdout: &out, stderr: &errors}
	code = p.run(t.Context(), append(arguments, "--kubectl="+self))
	left, err := os.ReadDir(directory)
	if err != nil || len(left) > 0 {
		t.Errorf("%d objects are left, %v", len(left), err)
	}
	return code, out.String(), errors.String()
}

func numbered(format string, from, to int) (text string) {
	for i := from; i <= to; i++ {
		text += fmt.Sprintf(format, i)
	}
	return text
}

// Pages are read from the end until there are as many lines or bytes as are wanted.
func TestLogsComeInPages(t *testing.T) {
	for _, test := range []struct {
		flags []string
		from  int
	}{
		{[]string{"--limit-bytes=0"}, 0},
		{[]string{"--tail=5"}, 5},
		{[]string{"--tail=99"}, 0},
		{[]string{"--limit-bytes=22"}, 4}, // two pages
	} {
		code, stdout, stderr := run(t, append([]string{"logs", "p/t"}, test.flags...)...)
		if want := numbered("line %d\n", test.from, 9); code != 0 || stdout != want {
			t.Errorf("%v: exit code %d, %q, want %q; %s", test.flags, code, stdout, want, stderr)
		}
		if more := strings.Contains(stderr, "there is more before"); more != (test.from > 0) {
			t.Errorf("%v: %s", test.flags, stderr)
		}
	}
}

// A chain that is broken is said, and ends the command with 1.
func TestAuditRecordsComeInPages(t *testing.T) {
	for limit, from := range map[string]int{"0": 1, "5": 6, "100": 1} {
		code, stdout, stderr := run(t, "audit", "p", "--limit="+limit, "--output=json")
		var shown shownAudit
		if err := json.Unmarshal([]byte(stdout), &shown); err != nil {
			t.Fatalf("%v: %s %s", err, stdout, stderr)
		}
		if code != exitFailure || len(shown.Records) != 11-from || shown.Fault != "line 3" {
			t.Errorf("--limit=%s: exit code %d, %d records, %q", limit, code, len(shown.Records), shown.Fault)
		}
	}
	if _, _, stderr := run(t, "audit", "p"); !strings.Contains(stderr, "of member m-0 is damaged or was altered: line 3") {
		t.Error(stderr)
	}
}

func TestChain(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, shown := range map[string]shownAudit{
		"was not verified since its monitor started":                  {},
		"was verified at 2026-03-01T12:00:00Z: its chain is complete": {Verified: at},
		"is damaged or was altered: line 3":                           {Verified: at, Fault: "line 3"},
	} {
		if got := shown.chain(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLastLines(t *testing.T) {
	for _, test := range []struct {
		text  string
		lines int
		want  string
		cut   bool
	}{
		{"a\nb\nc\n", -1, "a\nb\nc\n", false},
		{"a\nb\nc\n", 2, "b\nc\n", true},
		{"a\nb\nc", 2, "b\nc", true},
		{"a\nb\nc\n", 3, "a\nb\nc\n", false},
		{"a\n", 0, "", true},
		{"", 0, "", false},
		{"", 5, "", false},
	} {
		if got, cut := last([]byte(test.text), test.lines); string(got) != test.want || cut != test.cut {
			t.Errorf("%d of %q: %q, %t", test.lines, test.text, got, cut)
		}
	}
}
