// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"shai.dev/monitor/policy"
)

// maxFactLine bounds one line of a fact file: a conduit with a million short tuples
// fits, and a file without line breaks does not fill the memory.
const maxFactLine = 64 << 20

// ImportError is a bad line of a fact file. Nothing of any file was imported.
type ImportError struct {
	File  string
	Line  int // from 1
	Cause error
}

func (e *ImportError) Error() string {
	return fmt.Sprintf("%s:%d: %v; nothing was imported, correct the line and import again", e.File, e.Line, e.Cause)
}

func (e *ImportError) Unwrap() error { return e.Cause }

// ImportFacts adds the facts of JSON-lines files, in one durable step: each line is
// {"conduit":"friends/alice","says":"friend","tuples":[["bob"],["carol"]]}. The
// first bad line is an [*ImportError], and nothing is imported. Facts that stand
// already are left alone.
func (c *Catalog) ImportFacts(files ...string) (*Change, error) {
	facts, err := readFactFiles(files)
	if err != nil {
		return nil, err
	}
	return c.commit("import facts", func(d *draft) error { return d.facts(nil, facts) })
}

// readFactFiles reads files whole: what they say is checked before any of it counts.
func readFactFiles(files []string) ([]policy.Fact, error) {
	intern := make(map[string]string)
	var facts []policy.Fact
	for _, name := range files {
		file, err := os.Open(name) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, fmt.Errorf("import facts: %w", err)
		}
		facts, err = readFacts(file, name, intern, facts)
		_ = file.Close()
		if err != nil {
			return nil, err
		}
	}
	return facts, nil
}

func readFacts(from io.Reader, name string, intern map[string]string, facts []policy.Fact) ([]policy.Fact, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxFactLine)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var err error
		if facts, err = parseFactLine(line, intern, facts); err != nil {
			return nil, &ImportError{File: name, Line: number, Cause: err}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &ImportError{File: name, Line: number + 1, Cause: fmt.Errorf("the line is longer than %d bytes; split its tuples over several lines", maxFactLine)}
	} else if err != nil {
		return nil, fmt.Errorf("import facts from %s: %w", name, err)
	}
	return facts, nil
}

// factLine is one line; pointers tell a missing field from an empty one.
type factLine struct {
	Conduit *string          `json:"conduit"`
	Says    *string          `json:"says"`
	Tuples  [][]policy.Value `json:"tuples"`
}

func parseFactLine(line []byte, intern map[string]string, facts []policy.Fact) ([]policy.Fact, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("not valid UTF-8")
	}
	reader := json.NewDecoder(bytes.NewReader(line))
	reader.DisallowUnknownFields()
	var parsed factLine
	if err := reader.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("not a fact: %w", err)
	}
	if reader.More() {
		return nil, errors.New("more than one JSON value on the line")
	}
	if parsed.Conduit == nil || parsed.Says == nil {
		return nil, errors.New(`expected the fields "conduit", "says" and "tuples"`)
	}
	conduit, relation := shared(intern, *parsed.Conduit), shared(intern, *parsed.Says)
	for _, tuple := range parsed.Tuples {
		for i, value := range tuple {
			if value.Kind() == policy.StringValue {
				tuple[i] = policy.String(shared(intern, value.Text()))
			}
		}
		fact := policy.Fact{Conduit: conduit, Relation: relation, Arguments: tuple}
		if err := checkFact(fact); err != nil {
			return nil, err
		}
		facts = append(facts, fact)
	}
	return facts, nil
}

// shared makes equal texts one text: four million tuples name forty thousand users.
func shared(intern map[string]string, text string) string {
	if known, ok := intern[text]; ok {
		return known
	}
	text = strings.Clone(text)
	intern[text] = text
	return text
}
