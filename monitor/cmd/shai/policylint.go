// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// linted is the result of shai policy lint.
type linted struct {
	Files       int                 `json:"files"`
	Policies    int                 `json:"policies"`
	Errors      int                 `json:"errors"`
	Warnings    int                 `json:"warnings"`
	Diagnostics []policy.Diagnostic `json:"diagnostics"`
}

func (p *program) policyLintCommand() *cobra.Command {
	var strict bool
	command := &cobra.Command{
		Use:   "lint [FILE|DIR]…",
		Short: "Find mistakes in policies, and what is probably not meant",
		Long: `Examine policy files (.pol) and the policies of manifests (.yaml, .yml, .json), the
current directory if none is named. Of a directory, all these files are examined together:
policies may include each other, and are compared with the relations that FactSources declare
and with the names of tasks. Every finding is shown at once, with its place and a remedy;
a file of a directory that cannot be read is one. The exit code is 1 if there is an error (with --strict, also for a warning).`,
		Example: `  shai policy lint
  shai policy lint friends.pol crds/examples/syse
  shai policy lint --output json policies/`,
		RunE: p.does(func(_ context.Context, arguments []string) error {
			if len(arguments) == 0 {
				arguments = []string{"."}
			}
			result, texts, err := p.lint(arguments)
			if err != nil {
				return err
			}
			err = p.print(result, func(w io.Writer) { printLinted(w, result, texts) })
			if err == nil && (result.Errors > 0 || strict && result.Warnings > 0) {
				return errSaid
			}
			return err
		}),
	}
	command.Flags().BoolVar(&strict, "strict", false, "fail for warnings, too")
	return command
}

// lint examines all files together. It also returns their texts, so that lines can be shown.
func (p *program) lint(paths []string) (linted, map[string]string, error) {
	given, err := p.readPolicies(paths)
	if err != nil {
		return linted{}, nil, err
	}
	result := linted{Files: len(given.texts) + len(given.unread),
		Diagnostics: append([]policy.Diagnostic{}, given.unread...)}
	set := manifest.Parse(given.manifests...)
	result.Policies = set.Count("Policy")
	report, err := set.Report()
	if err != nil {
		return linted{}, nil, err
	}
	result.Diagnostics = append(result.Diagnostics, report.Findings()...)
	var files []*policy.File
	for _, name := range given.policies {
		file, mistakes := policy.ParseAll(name, []byte(given.texts[name]))
		result.Policies += len(file.Policies)
		result.Diagnostics = append(result.Diagnostics, mistakes.Diagnostics()...)
		if len(mistakes) == 0 {
			files = append(files, file)
		}
	}
	result.Diagnostics = append(result.Diagnostics, policy.Lint(report.Surroundings, files...)...)
	policy.SortDiagnostics(result.Diagnostics)
	for _, d := range result.Diagnostics {
		if d.Severity == policy.SeverityError {
			result.Errors++
		} else {
			result.Warnings++
		}
	}
	return result, given.texts, nil
}

// policySources are the files that commands about policies are given.
type policySources struct {
	policies  []string            // names of policy files, in order
	manifests []manifest.Source   // in order
	texts     map[string]string   // of all
	unread    []policy.Diagnostic // of files in directories that cannot be read
}

// readPolicies reads policy files and manifests; of a directory, all of both. A file that is named and cannot
// be read is an error, one that a directory has is a finding.
func (p *program) readPolicies(paths []string) (policySources, error) {
	given := policySources{texts: map[string]string{}}
	for _, path := range paths {
		if about, err := os.Stat(path); path != "-" && err == nil && about.IsDir() {
			if err := p.readDirectory(&given, path); err != nil {
				return given, err
			}
		} else if err := p.readOne(&given, path); err != nil {
			return given, err
		}
	}
	return given, nil
}

// readDirectory reads the policy files and the manifests of a directory.
func (p *program) readDirectory(given *policySources, directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("read policies: %w", err)
	}
	found := false
	for _, entry := range entries {
		name := filepath.Join(directory, entry.Name())
		if entry.IsDir() || filepath.Ext(name) != policyFile && !manifest.IsManifest(entry.Name()) {
			continue
		}
		found = true
		if err := p.readOne(given, name); err != nil {
			given.unread = append(given.unread, unreadable(name, err))
		}
	}
	if !found {
		return fmt.Errorf("read policies: %s has no .pol, .yaml, .yml or .json file", directory)
	}
	return nil
}

// policyFile is how names of policy files end.
const policyFile = ".pol"

// readOne reads a policy file, a manifest, or standard input, which is a manifest.
func (p *program) readOne(given *policySources, name string) error {
	if filepath.Ext(name) == policyFile {
		text, err := plainfile.ReadStart(name, policy.MaxText)
		if err != nil {
			return fmt.Errorf("read policy: %w", err)
		}
		if _, twice := given.texts[name]; !twice {
			given.policies = append(given.policies, name)
		}
		given.texts[name] = string(text)
		return nil
	}
	sources, err := manifest.Read(p.stdin, name)
	if err != nil {
		return err
	}
	for _, source := range sources {
		if _, twice := given.texts[source.Name]; !twice {
			given.manifests = append(given.manifests, source)
		}
		given.texts[source.Name] = source.Text
	}
	return nil
}

// unreadable is the finding about a file of a directory that cannot be read.
func unreadable(name string, err error) policy.Diagnostic {
	found := policy.Diagnostic{Severity: policy.SeverityError, Code: policy.CodeUnreadable, File: name,
		Message: fmt.Sprintf("the file cannot be read: %v", err), Remedy: "make it readable, or remove it"}
	about, failed := os.Lstat(name)
	if failed == nil && about.Mode().Type() == os.ModeSymlink && errors.Is(err, os.ErrNotExist) {
		found.Message, found.Remedy = "the symbolic link leads to no file", "correct the link, or remove it"
	}
	return found
}

func printLinted(w io.Writer, result linted, texts map[string]string) {
	for _, d := range result.Diagnostics {
		fmt.Fprintf(w, "%s: %s: %s (%s)\n", manifest.Position{File: d.File, Line: d.Line, Column: d.Column}, d.Severity,
			d.Message, d.Code)
		printLine(w, texts[d.File], d.Line, d.Column)
		if d.Remedy != "" {
			fmt.Fprintf(w, "      = %s\n", d.Remedy)
		}
	}
	policies := counted(result.Policies, "policy")
	if result.Policies != 1 {
		policies = fmt.Sprintf("%d policies", result.Policies)
	}
	fmt.Fprintf(w, "%s and %s in %s of %s\n", counted(result.Errors, "error"), counted(result.Warnings, "warning"),
		policies, counted(result.Files, "file"))
}
