// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/manifest"
)

// readStatement reads a line, which has to say exactly one thing.
func readStatement(line []byte, declared manifest.Declared, known *knownfacts.Checker) (manifest.FactStatement, error) {
	statement, err := parseStatement(line)
	if err != nil {
		return statement, fmt.Errorf("not a fact statement: %w; expected {\"conduit\":…,\"says\":…,\"tuples\":[[…]]}",
			err)
	}
	switch {
	case statement.Conduit == "" || statement.Says == "":
		return statement, errors.New("conduit and says must not be empty; name both")
	case statement.Tuples == nil:
		return statement, errors.New("tuples is missing; write [] if there are none")
	}
	for _, tuple := range statement.Tuples {
		if err := declared.Check(statement.Conduit, statement.Says, tuple); err != nil {
			return statement, err
		}
		if err := known.Check(statement.Conduit, statement.Says, tuple); err != nil {
			return statement, err
		}
		if err := fits(statement.Conduit, statement.Says, tuple.Values()); err != nil {
			return statement, err
		}
	}
	return statement, nil
}

// parseStatement reads the fields one by one: of a field that is there twice, package json would keep the
// last one, and the facts of the first would be missing.
func parseStatement(line []byte) (statement manifest.FactStatement, err error) {
	if err := wellFormed(line); err != nil {
		return statement, err
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if begin, err := decoder.Token(); err != nil {
		return statement, err
	} else if begin != json.Delim('{') {
		return statement, errors.New("expected an object")
	}
	fields := map[string]any{"conduit": &statement.Conduit, "says": &statement.Says, "tuples": &statement.Tuples}
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return statement, err
		}
		name, _ := key.(string) // a key of an object is a text
		switch field, known := fields[name]; {
		case !known:
			return statement, fmt.Errorf("json: unknown field %q", name)
		case seen[name]:
			return statement, fmt.Errorf("field %q is given twice", name)
		default:
			seen[name] = true
			if err := decoder.Decode(field); err != nil {
				return statement, err
			}
		}
	}
	if _, err := decoder.Token(); err != nil { // the end of the object
		return statement, err
	}
	switch _, err := decoder.Token(); {
	case errors.Is(err, io.EOF):
		return statement, nil
	case err != nil:
		return statement, err
	}
	return statement, errors.New("more than one JSON value on the line")
}

// wellFormed refuses JSON with texts that package json would read as others: it puts the replacement
// character in the place of what is not UTF-8, and of half a character in an escape.
func wellFormed(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i < len(text); {
		unit, escaped := unitAt(text[i:])
		if !escaped {
			i = nextEscape(text, i+len(`\n`))
			continue
		}
		if utf16.IsSurrogate(unit) {
			second, follows := unitAt(text[i+len(`\u0000`):])
			if !follows || utf16.DecodeRune(unit, second) == utf8.RuneError {
				return fmt.Errorf("%s is half a character", text[i:i+len(`\u0000`)])
			}
			i += len(`\u0000`)
		}
		i = nextEscape(text, i+len(`\u0000`))
	}
	return nil
}

// nextEscape returns where the next escape begins, from a place on; -1 if there is none.
func nextEscape(text []byte, from int) int {
	if from >= len(text) {
		return -1
	}
	at := bytes.IndexByte(text[from:], '\\')
	if at < 0 {
		return -1
	}
	return from + at
}

// unitAt returns the unit of UTF-16 with whose escape a text begins, if it begins with one.
func unitAt(text []byte) (unit rune, escaped bool) {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	number, err := strconv.ParseUint(string(text[len(`\u`):len(`\u0000`)]), 16, 16)
	return rune(number), err == nil
}
