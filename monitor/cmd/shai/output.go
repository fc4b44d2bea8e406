// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/internal/shape"
)

// print writes a result in the format of --output: the value for programs, or the output
// of text for people.
func (p *program) print(value any, text func(w io.Writer)) error {
	switch p.output {
	case "json":
		encoder := json.NewEncoder(p.stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		return printYAML(p.stdout, value)
	}
	var built strings.Builder
	text(&built)
	_, err := io.WriteString(p.stdout, printableLines(built.String()))
	return err
}

// printYAML writes a value with the field names and the order of its JSON form.
func printYAML(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	plain(&node)
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return err
	}
	return encoder.Close()
}

// plain removes JSON's braces and quotes from a node.
func plain(node *yaml.Node) {
	if len(node.Content) > 0 || node.Kind == yaml.ScalarNode {
		node.Style = 0
	}
	for _, child := range node.Content {
		plain(child)
	}
}

// table writes rows with aligned columns.
func table(w io.Writer, rows [][]string) { io.WriteString(w, shape.Table(rows)) }

// grouped writes a count with a space between thousands.
func grouped[N int | uint64](n N) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// either returns s, or other if s is empty.
func either(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// counted returns "1 file", "2 files", "3 classes" or "20 000 files".
func counted[N int | uint64](n N, noun string) string {
	if n != 1 && strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}
