// SPDX-License-Identifier: BSD-2-Clause

// Package factsource fetches facts from external sources: keys and streams of a Redis or
// Valkey server, and HTTP addresses that return fact statements. It fetches either
// everything that the source says, or the changes since a position. It stores no facts
// and puts none in force.
package factsource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// Limits on one fetch. Data beyond them is an error and is never cut off: a part of the
// facts could allow what all of them forbid.
const (
	maxFacts    = 4 << 20
	maxValues   = 8 << 20  // of an HTTP answer: one may have 2 bytes there, and takes 40 of memory
	maxBytes    = 64 << 20 // of an HTTP answer, of the replies about keys, or of the facts of a stream
	fetchTime   = 30 * time.Second
	maxLineSize = 64 << 20 // of a file; a conduit with a million short tuples fits
)

// Update is the result of a fetch. The zero value means that nothing has changed.
type Update struct {
	Whole *catalog.Fetched // everything that the source says
	// Steps are the changes since the position of the fetch. Position is where the next
	// fetch continues. Both are set only without Whole.
	Steps    []catalog.Step
	Position string
}

// Empty reports whether nothing has changed.
func (u Update) Empty() bool { return u.Whole == nil && len(u.Steps) == 0 }

// Source is a source of facts. Its methods are called one at a time.
type Source interface {
	// Fetch fetches the changes since a position from an earlier fetch, or everything if
	// there is no position. It returns early when ctx ends.
	Fetch(ctx context.Context, position string) (Update, error)
	// Pause returns how long to wait before the next fetch; 0 if Fetch itself waits.
	Pause() time.Duration
	// Close closes the connections.
	Close()
}

// Login authenticates at a store. The zero value means no authentication.
type Login struct {
	Command  string // the store's name of AUTH
	User     string
	Password string
}

// Open makes a source from a specification whose variables are replaced. It does not
// connect yet. A source that is not allowed is an error ([allowlist.Refused]): nothing is
// opened for it.
func Open(spec manifest.FactSourceSpec, login Login, allowed allowlist.List) (Source, error) {
	switch {
	case spec.Redis != nil:
		if err := allowed.Socket(spec.Redis.Socket); err != nil {
			return nil, err
		}
		if spec.Redis.Stream != nil {
			return &stream{spec: *spec.Redis, declared: spec.Declared(), login: login, block: blockTime,
				replayTime: fetchTime}, nil
		}
		return newKeys(*spec.Redis, spec.Declared(), login)
	case spec.HTTP != nil:
		source, err := newAddress(*spec.HTTP, allowed, net.DefaultResolver)
		if err != nil {
			return nil, err
		}
		source.declared = spec.Declared()
		return source, nil
	}
	return nil, errors.New("the source has nothing to fetch from; expected redis or http")
}

// wrongLines is how many lines that are wrong are reported; nobody reads more.
const wrongLines = 20

// ReadStatements reads JSON lines, each a manifest.FactStatement, and compares them with what their
// source declares. name is the file's name for errors. The error is about all lines that are wrong.
func ReadStatements(from io.Reader, name string, declared manifest.Declared) ([]policy.Fact, error) {
	return readStatements(from, name, declared, func([]byte) error { return nil })
}

// tally counts the tuples and values of an answer before they are decoded, when they take a multiple of their text.
// What looks like one inside a text counts, too.
type tally struct{ facts, values, mostFacts, mostValues int }

func (t *tally) add(line []byte) error {
	t.facts += bytes.Count(line, []byte{'['})
	t.values += bytes.Count(line, []byte{','})
	switch {
	case t.facts > t.mostFacts:
		return fmt.Errorf("%w: more than %d tuples; divide the facts among several sources", errTooMany, t.mostFacts)
	case t.values > t.mostValues:
		return fmt.Errorf("%w: more than %d values; divide the facts among several sources", errTooMany, t.mostValues)
	}
	return nil
}

var errTooMany = errors.New("the answer is refused")

// readStatements asks about each line before it reads it. An error ends the reading.
func readStatements(from io.Reader, name string, declared manifest.Declared, accepts func(line []byte) error) (
	[]policy.Fact, error) {
	var facts []policy.Fact
	var wrong []error
	var known knownfacts.Checker
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineSize)
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := accepts(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		statement, err := readStatement(lines.Bytes(), declared, &known)
		if err != nil {
			if wrong = append(wrong, fmt.Errorf("%s:%d: %w", name, number, err)); len(wrong) == wrongLines {
				break
			}
		}
		facts = AppendStatement(facts, statement)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		wrong = append(wrong, fmt.Errorf("%s:%d: the line is longer than %d bytes; split its tuples over several lines", name,
			number+1, maxLineSize))
	} else if err != nil {
		wrong = append(wrong, fmt.Errorf("read facts from %s: %w", name, err))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return facts, nil
}

// fits refuses a value that no fact may have, before it is kept.
func fits(conduit, says string, values []policy.Value) error {
	for _, value := range values {
		if size := len(value.Text()); size > policy.MaxString {
			return fmt.Errorf("%q says %s: a value has %d bytes; at most %d are allowed", conduit, says, size, policy.MaxString)
		}
	}
	return nil
}

// AppendStatement appends the facts of a statement.
func AppendStatement(facts []policy.Fact, statement manifest.FactStatement) []policy.Fact {
	for _, tuple := range statement.Tuples {
		facts = append(facts, policy.Fact{
			Conduit: statement.Conduit, Relation: statement.Says, Arguments: tuple.Values(),
		})
	}
	return facts
}
