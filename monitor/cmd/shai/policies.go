// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

func (p *program) policyCommand() *cobra.Command {
	return group("policy", "Check, lint, test, compare and format policies, and choose the policy of one document",
		p.policyCheckCommand(), p.policyLintCommand(), p.policyFormatCommand(), p.policyTestCommand(),
		p.policyEvalCommand(), p.policyCompareCommand(), p.policyChoicesCommand(), p.policySetCommand(),
		p.policyLibraryCommand(), p.policyServerCommand())
}

// finding is one error and its position.
type finding struct {
	File    string      `json:"file"`
	Line    int         `json:"line,omitempty"`
	Column  int         `json:"column,omitempty"`
	Code    policy.Code `json:"code,omitempty"` // of a finding in a policy's text
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
}

// checked is the result of shai policy check.
type checked struct {
	Files    int       `json:"files"`
	Policies []string  `json:"policies"` // "friends(owner)"
	Objects  int       `json:"objects"`  // of manifests
	Findings []finding `json:"findings"`
}

func (p *program) policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE|DIRECTORY…",
		Short: "Check policies and manifests",
		Long: `Parse and compile policy files (.pol), and check manifests (.yaml, .yml, .json) as
"shai apply" would, references between them included; of a directory, all of both in it. Every
error is shown with its line. The exit code is 1 if there is an error.`,
		Example: `  shai policy check friends.pol
  shai policy check crds/examples/syse
  shai policy check - < manifests.yaml`,
		Args: takes("FILE|DIRECTORY…"),
		RunE: p.does(func(_ context.Context, arguments []string) error {
			result, sources, err := p.check(arguments)
			if err != nil {
				return err
			}
			err = p.print(result, func(w io.Writer) { printChecked(w, result, sources) })
			if err == nil && len(result.Findings) > 0 {
				return errSaid
			}
			return err
		}),
	}
}

// inDirectories puts the policy files of each directory in its place, and leaves the directory if it has manifests.
func inDirectories(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		if about, err := os.Stat(path); path == "-" || err != nil || !about.IsDir() {
			all = append(all, path) // who reads it says what is wrong
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("read policies: %w", err)
		}
		before, manifests := len(all), false
		for _, entry := range entries {
			if !entry.IsDir() && filepath.Ext(entry.Name()) == policyFile {
				all = append(all, filepath.Join(path, entry.Name()))
			}
			manifests = manifests || !entry.IsDir() && manifest.IsManifest(entry.Name())
		}
		if manifests {
			all = append(all, path)
		}
		if len(all) == before {
			return nil, fmt.Errorf("read policies: %s has no .pol, .yaml, .yml or .json file", path)
		}
	}
	return all, nil
}

// check checks every policy file by itself and all manifests together. It also returns
// the texts by file, so that the lines of errors can be shown.
func (p *program) check(paths []string) (checked, map[string]string, error) {
	result := checked{Policies: []string{}, Findings: []finding{}}
	texts := map[string]string{}
	var manifests []string
	var files []*policy.File
	all, err := inDirectories(paths)
	if err != nil {
		return result, nil, err
	}
	for _, path := range all {
		if filepath.Ext(path) != policyFile {
			manifests = append(manifests, path)
			continue
		}
		text, err := plainfile.ReadStart(path, policy.MaxText)
		if err != nil && slices.Contains(paths, path) {
			return result, nil, fmt.Errorf("read policy: %w", err)
		}
		result.Files++
		if err != nil { // of a directory: one such file hides no mistake in the others
			result.diagnostics([]policy.Diagnostic{unreadable(path, err)})
			continue
		}
		texts[path] = string(text)
		file, mistakes := policy.ParseAll(path, text)
		result.diagnostics(mistakes.Diagnostics())
		if len(mistakes) == 0 {
			files = append(files, file)
		}
	}
	result.policyFiles(files)
	sources, err := manifest.Read(p.stdin, manifests...)
	if err != nil {
		return result, nil, err
	}
	for _, source := range sources {
		texts[source.Name] = source.Text
		result.Files++
	}
	if len(sources) > 0 {
		err = result.manifests(sources)
	}
	return result, texts, err
}

// policyFiles compiles files together: their policies may include each other.
func (c *checked) policyFiles(files []*policy.File) {
	for _, one := range policy.Check(policy.Surroundings{}, files...) {
		c.diagnostics(one.Diagnostics)
		if one.Template != nil {
			c.Policies = append(c.Policies,
				fmt.Sprintf("%s(%s)", either(one.Name, one.File), strings.Join(one.Template.Parameters(), ", ")))
		}
	}
}

// diagnostics adds those that are errors; shai policy lint shows the others, too.
func (c *checked) diagnostics(found []policy.Diagnostic) {
	for _, d := range found {
		if d.Severity == policy.SeverityError {
			c.Findings = append(c.Findings, finding{File: d.File, Line: d.Line, Column: d.Column, Code: d.Code,
				Message: d.Message, Hint: d.Remedy})
		}
	}
}

func (c *checked) manifests(sources []manifest.Source) error {
	set := manifest.Parse(sources...)
	c.Objects = set.Len()
	report, err := set.Report()
	if err != nil {
		return err
	}
	for _, m := range report.Errors {
		c.Findings = append(c.Findings, manifestFinding(m))
	}
	if len(report.Errors) > 0 {
		return nil
	}
	for _, one := range report.Bundle.Policies() {
		c.Policies = append(c.Policies, fmt.Sprintf("%s(%s)", one.Metadata.Name,
			strings.Join(report.Parameters[one.Metadata.Name], ", ")))
	}
	return nil
}

func printChecked(w io.Writer, result checked, texts map[string]string) {
	printFindings(w, result.Findings, texts)
	if len(result.Findings) > 0 {
		fmt.Fprintf(w, "%s in %s\n", counted(len(result.Findings), "error"), counted(result.Files, "file"))
		return
	}
	fmt.Fprintf(w, "no errors in %s\n", counted(result.Files, "file"))
	for _, name := range result.Policies {
		fmt.Fprintf(w, "  policy %s\n", name)
	}
}

// printLine shows a line with a caret under a column, which counts bytes. Tabs are
// replaced, so that the caret is under the right character.
func printLine(w io.Writer, text string, line, column int) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) || strings.TrimSpace(lines[line-1]) == "" {
		return
	}
	shown := strings.TrimRight(lines[line-1], "\r")
	const limit = 160
	if len(shown) > limit {
		if column > limit {
			return // the column is cut off; its number must suffice
		}
		shown = strings.ToValidUTF8(shown[:limit], "") + "…"
	}
	fmt.Fprintf(w, "%5d | %s\n", line, printable(strings.ReplaceAll(shown, "\t", "    ")))
	if column < 1 || column > len(shown)+1 {
		return
	}
	before := []rune(printable(strings.ReplaceAll(shown[:column-1], "\t", "    ")))
	fmt.Fprintf(w, "      | %s^\n", strings.Repeat(" ", len(before)))
}

func (p *program) policyFormatCommand() *cobra.Command {
	var write bool
	command := &cobra.Command{
		Use:   "format FILE…",
		Short: "Print policy files in their standard form",
		Example: `  shai policy format friends.pol
  shai policy format --write policies/*.pol`,
		Args: takes("FILE…"),
		RunE: p.does(func(_ context.Context, arguments []string) error {
			for _, path := range arguments {
				if err := p.format(path, write); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	command.Flags().BoolVarP(&write, "write", "w", false, "write the files instead of printing them")
	return command
}

func (p *program) format(path string, write bool) error {
	about, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("format policy: %w", err)
	}
	text, err := plainfile.ReadStart(path, policy.MaxText)
	if err != nil {
		return fmt.Errorf("format policy: %w", err)
	}
	file, err := policy.Parse(path, text)
	if err != nil {
		return err
	}
	formatted := file.Format()
	if !write {
		_, err := p.stdout.Write(formatted)
		return err
	}
	if string(formatted) == string(text) {
		return nil
	}
	return replaceFile(path, formatted, about.Mode().Perm())
}
