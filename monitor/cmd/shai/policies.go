// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

func (p *program) policyCommand() *cobra.Command {
	return group("policy", "Check and format policies; needs no monitor", p.policyCheckCommand(),
		p.policyFormatCommand())
}

// finding is one error and its position.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
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
		Use:   "check FILE…",
		Short: "Check policies and manifests",
		Long: `Parse and compile policy files (.pol), and check manifests (.yaml, .yml, .json and
directories of them) as "shai apply" would, references between them included. Every
error is shown with its line. The exit code is 1 if there is an error.`,
		Example: `  shai policy check friends.pol
  shai policy check crds/examples/syse
  shai policy check - < manifests.yaml`,
		Args: takes("FILE…"),
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

// check checks every policy file by itself and all manifests together. It also returns
// the texts by file, so that the lines of errors can be shown.
func (p *program) check(paths []string) (checked, map[string]string, error) {
	result := checked{Policies: []string{}, Findings: []finding{}}
	texts := map[string]string{}
	var manifests []string
	for _, path := range paths {
		if filepath.Ext(path) != ".pol" {
			manifests = append(manifests, path)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return result, nil, fmt.Errorf("read policy: %w", err)
		}
		texts[path] = string(text)
		result.Files++
		result.policyFile(path, text)
	}
	sources, err := manifest.Read(p.stdin, manifests...)
	if err != nil {
		return result, nil, err
	}
	for _, source := range sources {
		texts[source.Name] = source.Text
		result.Files++
	}
	if len(sources) > 0 {
		result.manifests(sources)
	}
	return result, texts, nil
}

func (c *checked) policyFile(path string, text []byte) {
	file, err := policy.Parse(path, text)
	if err == nil {
		var templates []*policy.Template
		if templates, err = file.Compile(); err == nil {
			err = suppliedAll(templates)
		}
		if err == nil {
			for _, t := range templates {
				c.Policies = append(c.Policies,
					fmt.Sprintf("%s(%s)", either(t.Name(), path), strings.Join(t.Parameters(), ", ")))
			}
			return
		}
	}
	var mistakes policy.Errors
	if !errors.As(err, &mistakes) {
		c.Findings = append(c.Findings, finding{File: path, Message: err.Error()})
		return
	}
	for _, m := range mistakes {
		message := m.Message
		if m.Expected != "" {
			message += ", expected " + m.Expected
		}
		c.Findings = append(c.Findings, finding{File: path, Line: m.Line, Column: m.Column, Message: message,
			Hint: m.Hint})
	}
}

// suppliedAll reports conditions of a file's policies that no monitor can enforce.
func suppliedAll(templates []*policy.Template) error {
	var all policy.Errors
	for _, t := range templates {
		var mistakes policy.Errors
		if errors.As(t.CheckSupplied(policy.GrantOpen), &mistakes) {
			all = append(all, mistakes...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func (c *checked) manifests(sources []manifest.Source) {
	set := manifest.Parse(sources...)
	c.Objects = set.Len()
	bundle, err := set.Bundle()
	var mistakes manifest.Errors
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			message := m.Message
			for _, around := range []string{m.Field, m.Object()} {
				if around != "" {
					message = around + ": " + message
				}
			}
			c.Findings = append(c.Findings, finding{File: m.Position.File, Line: m.Position.Line,
				Column:  m.Position.Column,
				Message: message, Hint: m.Hint})
		}
		return
	}
	for _, one := range bundle.Policies() {
		// It compiled a moment ago.
		if template, err := policy.CompileText(one.Metadata.Name, []byte(one.Spec.Text)); err == nil {
			c.Policies = append(c.Policies, fmt.Sprintf("%s(%s)", one.Metadata.Name,
				strings.Join(template.Parameters(), ", ")))
		}
	}
}

func printChecked(w io.Writer, result checked, texts map[string]string) {
	for _, f := range result.Findings {
		fmt.Fprintf(w, "%s: %s\n", manifest.Position{File: f.File, Line: f.Line, Column: f.Column}, f.Message)
		printLine(w, texts[f.File], f.Line, f.Column)
		if f.Hint != "" {
			fmt.Fprintf(w, "      = %s\n", f.Hint)
		}
	}
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
	text, err := os.ReadFile(path)
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
