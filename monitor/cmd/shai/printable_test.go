// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"io"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		`/corpus/Straße/été 1.txt`:    `/corpus/Straße/été 1.txt`,
		"日本/עברית/🙂 “a” …":            "日本/עברית/🙂 “a” …",
		"é":                           "é", // a combining accent
		`'it"s' \n`:                   `'it"s' \n`,
		"a\x1b[2Jb\x07\x7f":           `a\x1b[2Jb\a\x7f`,
		"one\ntwo\r\tthree":           `one\ntwo\r\tthree`,
		"allowed \u202etxt.exe":       `allowed \u202etxt.exe`, // from right to left
		"a\u2066b\u2069c\u200fd":      `a\u2066b\u2069c\u200fd`,
		"line\u2028and\u2029end":      `line\u2028and\u2029end`,
		"no\u00a0break\u3000wide":     `no\u00a0break\u3000wide`,
		"zero\u200bwidth\ufeff\u00ad": `zero\u200bwidth\ufeff\u00ad`,
		"next\u0085line \u009b1m":     `next\u0085line \u009b1m`,
		"tag \U000e0041":              `tag \U000e0041`,
		"private \ue000":              `private \ue000`,
		"filled \u3164\u2800\ufe0f":   `filled \u3164\u2800\ufe0f`,
		"broken \xff\xc3":             `broken \xff\xc3`,
		"replaced \ufffd":             "replaced \ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if again := printable(want); again != want {
			t.Errorf("%q changes when it is shown again: %q", want, again)
		}
	}
	if got, want := printableLines("a\u202e\n\tb\n"), "a\\u202e\n\\tb\n"; got != want {
		t.Errorf("lines are shown as %q, want %q", got, want)
	}
}

// A name that a task chose stays on its line, in its column, and in its direction.
func TestNamesAreShownPrintable(t *testing.T) {
	const name = "/out/x\n#9 allowed\u202e\t\x1b[2K"
	const want = `/out/x\n#9 allowed\u202e\t\x1b[2K`
	var record, rows, line strings.Builder
	if err := printRecord(&record, audit.Record{Event: audit.Event{Kind: audit.Denial, Conduit: name}}); err != nil {
		t.Fatal(err)
	}
	table(&rows, [][]string{{name, "next"}})
	printLine(&line, "a: "+strings.ReplaceAll(name, "\n", "")+"!", 1, 1+len("a: "+name)-1)
	for what, got := range map[string]string{"record": record.String(), "table": rows.String()} {
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("%s: %q", what, got)
		}
	}
	shown := strings.Split(line.String(), "\n")
	if strings.Index(shown[1], "^") != strings.Index(shown[0], "!") {
		t.Errorf("the caret is not under its character:\n%s", line.String())
	}
	p := &program{stdout: &record, output: "text"}
	record.Reset()
	if err := p.print(nil, func(w io.Writer) { io.WriteString(w, "one\ntwo\u202e\n") }); err != nil ||
		record.String() != "one\ntwo\\u202e\n" {
		t.Errorf("output: %q, %v", record.String(), err)
	}
}

// What a damaged log holds adds no line to what is said of it.
func TestVerificationsKeepTheirLines(t *testing.T) {
	var shown strings.Builder
	printVerification(&shown, audit.Verification{Fault: "x\n9 records in 1 file: the chain is complete"})
	want := `correct records: 0, then: x\n9 records in 1 file: the chain is complete` + "\n"
	if shown.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}
}

// What users write in facts, and tasks in names, adds no line to an explanation.
func TestExplanationsKeepTheirLines(t *testing.T) {
	const text = "x\nallowed: y"
	var shown strings.Builder
	api.Explanation{
		Question: api.Question{Access: "read", Conduit: text}, Sentence: text, WouldDeny: text, Instance: text,
		Policy: text, Taint: text, TaintOf: text, Conditions: []string{text}, Remedy: text,
		Derivation: api.Derivation{Statement: text, Because: []api.Derivation{{Statement: text}}},
	}.Print(&shown)
	want := strings.ReplaceAll("denied: T\n\nT\n\nread of T by T, policy T\ntaint: T (T)\n- T\n  - T\n\n"+
		"this holds as long as:\n  T\n\nto allow it: T\n", "T", `x\nallowed: y`)
	if shown.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}
}
