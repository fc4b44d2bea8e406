// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/policytest"
)

// tested is the result of shai policy test.
type tested struct {
	Files    int                   `json:"files"`
	Passed   int                   `json:"passed"`
	Failed   int                   `json:"failed"`
	Tests    []policytest.Outcome  `json:"tests"`
	Clauses  []policytest.Coverage `json:"clauses"`
	Findings []finding             `json:"findings"` // mistakes in the files

	texts map[string]string // of files with findings
	reads []string          // every file that was read
}

// testFlags are the command-line flags of shai policy test.
type testFlags struct {
	watch, everyClause bool
	junit              string
}

func (p *program) policyTestCommand() *cobra.Command {
	var flags testFlags
	command := &cobra.Command{
		Use:   "test FILE|DIRECTORY…",
		Short: "Run the tests that stand beside policies",
		Long: `Run the tests of policies: files that end in _test.yaml, of directories all those in and
beneath them. friends_test.yaml is about friends.pol, or about the file that it names with
"policy". A test gives facts, a session and an operation, and expects allowed or denied.

Of a failed test the derivation is printed. Then come the clauses that were never decisive:
without them every test would end in the same way. The exit code is 1 if a test fails or a
file has a mistake, and with --every-clause also if a clause was never decisive.`,
		Example: `  shai policy test policies
  shai policy test friends_test.yaml --watch
  shai policy test policies --junit results.xml --every-clause`,
		Args: takes("FILE|DIRECTORY…"),
		RunE: p.does(func(ctx context.Context, arguments []string) error {
			if flags.watch {
				return p.watchTests(ctx, flags, arguments)
			}
			_, err := p.testPolicies(flags, arguments)
			return err
		}),
	}
	f := command.Flags()
	f.BoolVarP(&flags.watch, "watch", "w", false, "run them again whenever a file changes, until Ctrl-C")
	f.BoolVar(&flags.everyClause, "every-clause", false, "fail if a clause was never decisive")
	f.StringVar(&flags.junit, "junit", "", "also write the results to this file, in JUnit's form")
	return command
}

// testPolicies runs the tests once and prints the result.
func (p *program) testPolicies(flags testFlags, paths []string) (tested, error) {
	result, err := runTests(paths)
	if err != nil {
		return result, err
	}
	if flags.junit != "" {
		text, err := policytest.JUnit(result.Tests)
		if err == nil {
			err = replaceFile(flags.junit, text, 0o644)
		}
		if err != nil {
			return result, err
		}
	}
	err = p.print(result, func(w io.Writer) { printTested(w, result) })
	if err == nil && !result.good(flags.everyClause) {
		err = errSaid
	}
	return result, err
}

func runTests(paths []string) (tested, error) {
	result := tested{Tests: []policytest.Outcome{}, Clauses: []policytest.Coverage{}, Findings: []finding{},
		texts: map[string]string{}}
	files, err := policytest.Find(paths...)
	if err != nil {
		return result, err
	}
	result.Files = len(files)
	for _, file := range files {
		suite, err := policytest.ReadSuite(file)
		if suite != nil {
			result.reads = append(result.reads, suite.Reads...)
		}
		if err != nil {
			found, known := findingsOf(err)
			if !known {
				return result, err
			}
			result.Findings = append(result.Findings, found...)
			continue
		}
		outcomes, coverage := suite.Run()
		result.Tests = append(result.Tests, outcomes...)
		result.Clauses = append(result.Clauses, coverage...)
	}
	for _, one := range result.Tests {
		if one.Passed {
			result.Passed++
		} else {
			result.Failed++
		}
	}
	readTexts(result.Findings, result.texts)
	return result, nil
}

func (t tested) good(everyClause bool) bool {
	return t.Failed == 0 && len(t.Findings) == 0 && !(everyClause && len(t.undecisive()) > 0)
}

func (t tested) undecisive() []policytest.Coverage {
	var list []policytest.Coverage
	for _, clause := range t.Clauses {
		if len(clause.Decides) == 0 {
			list = append(list, clause)
		}
	}
	return list
}

func printTested(w io.Writer, t tested) {
	printFindings(w, t.Findings, t.texts)
	for _, one := range t.Tests {
		if one.Passed {
			continue
		}
		fmt.Fprintf(w, "%s:%d: FAILED %s\n", one.File, one.Line, printable(one.Name))
		fmt.Fprintf(w, "      %s\n", printable(one.Wrong))
		if one.Sentence != "" {
			fmt.Fprintf(w, "      denied: %s\n", printable(one.Sentence))
		}
		if one.Derivation != nil {
			fmt.Fprintf(w, "      %s\n", strings.ReplaceAll(strings.TrimRight(one.Derivation.String(), "\n"), "\n", "\n      "))
		}
	}
	for _, clause := range t.undecisive() {
		at := manifest.Position{File: clause.File, Line: clause.Line, Column: clause.Column}
		what := "this " + clause.Rule + " clause"
		if clause.Rule == "declassify" {
			what = "this exit"
		}
		fmt.Fprintf(w, "%s: %s was never decisive: no test would notice that it is missing\n", at, what)
	}
	fmt.Fprintf(w, "%s in %s: %d passed, %d failed", counted(len(t.Tests), "test"), counted(t.Files, "file"),
		t.Passed, t.Failed)
	if n := len(t.Findings); n > 0 {
		fmt.Fprintf(w, ", %s", counted(n, "mistake"))
	}
	fmt.Fprintf(w, "; %d of %s decisive\n", len(t.Clauses)-len(t.undecisive()), counted(len(t.Clauses), "clause"))
}
