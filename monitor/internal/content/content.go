// SPDX-License-Identifier: BSD-2-Clause

// Package content reads what tasks write to typed conduits: each type of a conduit's content
// has a parser here. A parser is strict and total: content is a sequence of whole lines in one
// canonical form, or an error that names the line. So what was parsed is what is written, byte
// for byte, and two readers cannot understand it differently.
package content

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"shai.dev/monitor/policy"
)

// Limits of what a parser accepts.
const (
	MaxLine = 8192 // bytes of one line, with its end
	// MaxSize limits a conduit that is not a log, in bytes: it is written anew each time.
	MaxSize = 1 << 20
)

// ErrUnknownType is wrapped by the error about a type that is not registered.
var ErrUnknownType = errors.New("the type of content is unknown")

// Error says which line of some content is wrong, and why. Only Line is no part of the content.
type Error struct {
	Line   int // from 1
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Type is the declared shape of a conduit's content. It is immutable.
type Type struct {
	Name string // what manifests and cTypeIs call it
	// Log says that content is only ever added at the end, and that what it says are facts.
	Log bool
	// About is the position of the value that names the conduit which a line is about; -1: none.
	// Where nothing but names of conduits may stand, no text can.
	About int
	entry []policy.ValueKind // of a log: the kinds of an entry's values
	line  func(line string) (relation string, arguments []policy.Value, err error)
}

// The names of the types.
const (
	ConduitIDs = "conduit-ids" // lines of a conduit's number: conduit(N)
	AccessLog  = "access-log"  // lines of access("Name", "Conduit", Time)
	Topics     = "topics"      // lines of topic("name")
	Tuples     = "tuples"      // lines of relation(values)
)

// types are all shapes, by name.
var types = map[string]*Type{
	ConduitIDs: {Name: ConduitIDs, About: -1, line: number},
	AccessLog:  {Name: AccessLog, Log: true, About: 1, entry: accessEntry, line: only(access, accessEntry...)},
	Topics:     {Name: Topics, About: -1, line: only("topic", policy.StringValue)},
	Tuples:     {Name: Tuples, About: -1, line: tuple},
}

const access = "access"

var accessEntry = []policy.ValueKind{policy.StringValue, policy.StringValue, policy.TimeValue}

// Entries returns a pattern of all entries of a log.
func (t *Type) Entries(conduit string) policy.Pattern {
	return policy.Pattern{Conduit: conduit, Relation: access, Arguments: make([]policy.Value, len(t.entry)),
		Positioned: true}
}

// Find returns the type with a name. The error wraps ErrUnknownType.
func Find(name string) (*Type, error) {
	if found := types[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%w: %q; use %s", ErrUnknownType, name, strings.Join(Names(), ", "))
}

// Names lists the types, sorted.
func Names() []string { return slices.Sorted(maps.Keys(types)) }

// Parse reads content that begins at an offset of its conduit. Each line is a fact at the
// offset of its first byte; the facts have no conduit. Empty content has no facts. The error is an
// [*Error].
func (t *Type) Parse(text []byte, offset int64) ([]policy.Fact, error) {
	facts, _, err := t.parse(text, offset)
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// Whole returns what the whole lines at the beginning of a text say, and how long these are. It
// is for logs whose last write was interrupted.
func (t *Type) Whole(text []byte, offset int64) (facts []policy.Fact, length int64) {
	facts, used, _ := t.parse(text, offset)
	return facts, int64(used)
}

// parse reads lines until one is wrong, and returns the length of those that are not.
func (t *Type) parse(text []byte, offset int64) (facts []policy.Fact, used int, err error) {
	for number := 1; used < len(text); number++ {
		rest := text[used:]
		end := bytes.IndexByte(rest[:min(len(rest), MaxLine)], '\n')
		switch {
		case end < 0 && len(rest) < MaxLine:
			return facts, used, &Error{number, "it has no end: write a line break after the last line, too"}
		case end < 0:
			return facts, used, &Error{number, fmt.Sprintf("it is longer than %d bytes", MaxLine-1)}
		}
		relation, arguments, err := t.parseLine(rest[:end])
		if err != nil {
			return facts, used, &Error{number, err.Error()}
		}
		facts = append(facts, policy.Fact{Relation: relation, Arguments: arguments, Positioned: true,
			Offset: offset + int64(used)})
		used += end + 1
	}
	return facts, used, nil
}

func (t *Type) parseLine(line []byte) (string, []policy.Value, error) {
	if !utf8.Valid(line) {
		return "", nil, errors.New("it is not UTF-8")
	}
	text := string(line)
	relation, arguments, err := t.line(text)
	if err != nil {
		return "", nil, err
	}
	// There is one way to write each tuple. Any other could be one that a reader takes for another.
	if canonical := t.format(relation, arguments); canonical != text {
		return "", nil, fmt.Errorf("it is not in canonical form, which is %s", shorten(canonical))
	}
	return relation, arguments, nil
}

// Line returns the line that says a fact, with its end.
func (t *Type) Line(fact policy.Fact) string { return t.format(fact.Relation, fact.Arguments) + "\n" }

func (t *Type) format(relation string, arguments []policy.Value) string {
	if t.Name == ConduitIDs {
		return arguments[0].String()
	}
	texts := make([]string, len(arguments))
	for i, argument := range arguments {
		texts[i] = argument.String()
	}
	return relation + "(" + strings.Join(texts, ", ") + ")"
}

func shorten(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
