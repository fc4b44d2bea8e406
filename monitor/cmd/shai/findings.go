// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"io"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// findingsOf returns the mistakes in an error, if it is one about the texts of files.
func findingsOf(err error) (found []finding, known bool) {
	var ofPolicy policy.Errors
	var ofManifest manifest.Errors
	switch {
	case errors.As(err, &ofPolicy):
		for _, m := range ofPolicy {
			found = append(found, policyFinding(m))
		}
	case errors.As(err, &ofManifest):
		for _, m := range ofManifest {
			found = append(found, manifestFinding(m))
		}
	}
	return found, len(found) > 0
}

func policyFinding(m *policy.Error) finding {
	message := m.Message
	if m.Expected != "" {
		message += ", expected " + m.Expected
	}
	return finding{File: m.File, Line: m.Line, Column: m.Column, Code: m.Code, Message: message, Hint: m.Hint}
}

func manifestFinding(m *manifest.Error) finding {
	message := m.Message
	for _, around := range []string{m.Field, m.Object()} {
		if around != "" {
			message = around + ": " + message
		}
	}
	return finding{File: m.Position.File, Line: m.Position.Line, Column: m.Position.Column, Code: m.Lint,
		Message: message, Hint: m.Hint}
}

// readTexts adds the texts of the files with findings, so that their lines can be shown. What
// cannot be read any more is left out.
func readTexts(found []finding, texts map[string]string) {
	for _, f := range found {
		if _, known := texts[f.File]; known {
			continue
		}
		if text, err := plainfile.ReadStart(f.File, manifest.MaxSize); err == nil {
			texts[f.File] = string(text)
		}
	}
}

// printFindings writes mistakes with the lines that they are in.
func printFindings(w io.Writer, found []finding, texts map[string]string) {
	for _, f := range found {
		fmt.Fprintf(w, "%s: %s\n", manifest.Position{File: f.File, Line: f.Line, Column: f.Column}, f.Message)
		printLine(w, texts[f.File], f.Line, f.Column)
		if f.Hint != "" {
			fmt.Fprintf(w, "      = %s\n", f.Hint)
		}
	}
}
