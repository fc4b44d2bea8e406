// SPDX-License-Identifier: BSD-2-Clause

package content

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"shai.dev/monitor/policy"
)

// maxRelation limits the name of a relation, in bytes. It is that of facts.
const maxRelation = 64

// number reads the number of a conduit: conduit(N).
func number(line string) (string, []policy.Value, error) {
	n, err := strconv.ParseUint(line, 10, 32)
	if err != nil || n == 0 {
		return "", nil, fmt.Errorf("%q is not the number of a conduit, from 1 to %d", shorten(line), uint32(math.MaxUint32))
	}
	return "conduit", []policy.Value{policy.Integer(int64(n))}, nil
}

// only returns a reader of tuples of one relation with values of these kinds.
func only(relation string, kinds ...policy.ValueKind) func(string) (string, []policy.Value, error) {
	return func(line string) (string, []policy.Value, error) {
		found, arguments, err := tuple(line)
		if err != nil {
			return "", nil, err
		}
		if found != relation {
			return "", nil, fmt.Errorf("it says %s; here every line says %s", found, relation)
		}
		if len(arguments) != len(kinds) {
			return "", nil, fmt.Errorf("%s has %d values; expected %d", relation, len(arguments), len(kinds))
		}
		for i, kind := range kinds {
			if arguments[i].Kind() != kind {
				return "", nil, fmt.Errorf("value %d of %s is %s; expected a %s", i+1, relation,
					shorten(arguments[i].String()), kindNames[kind])
			}
		}
		return relation, arguments, nil
	}
}

var kindNames = map[policy.ValueKind]string{
	policy.StringValue: "text in quotes", policy.IntegerValue: "whole number", policy.TimeValue: "time as in RFC 3339",
}

// tuple reads relation(values), in the form of policies. The values are separated by a comma
// and a space.
func tuple(line string) (string, []policy.Value, error) {
	relation, rest, found := strings.Cut(line, "(")
	if !found || !isRelation(relation) {
		return "", nil, fmt.Errorf("%q is not of the form relation(value, …)", shorten(line))
	}
	rest, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return "", nil, errors.New("its closing parenthesis is missing")
	}
	var arguments []policy.Value
	for rest != "" {
		if len(arguments) == policy.MaxArguments {
			return "", nil, fmt.Errorf("it has more than %d values", policy.MaxArguments)
		}
		argument, after, err := value(rest)
		if err != nil {
			return "", nil, fmt.Errorf("value %d: %w", len(arguments)+1, err)
		}
		arguments = append(arguments, argument)
		if after == "" {
			break
		}
		if rest, found = strings.CutPrefix(after, ", "); !found || rest == "" {
			return "", nil, fmt.Errorf("a comma, a space and a value are expected at %q", shorten(after))
		}
	}
	return relation, arguments, nil
}

func isRelation(name string) bool {
	if name == "" || len(name) > maxRelation || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// value reads the first value of a text and returns what follows it.
func value(text string) (policy.Value, string, error) {
	if text[0] == '"' {
		return quoted(text)
	}
	end := strings.IndexByte(text, ',')
	if end < 0 {
		end = len(text)
	}
	word, rest := text[:end], text[end:]
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return policy.Integer(n), rest, nil
	}
	instant, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		return policy.Value{}, "", fmt.Errorf("%q is no text in quotes, no whole number of 64 bits and no time as in RFC 3339",
			shorten(word))
	}
	return policy.Time(instant), rest, nil // one that does not fit is not canonical any more
}

func quoted(text string) (policy.Value, string, error) {
	prefix, err := strconv.QuotedPrefix(text)
	if err != nil {
		return policy.Value{}, "", errors.New("the text is not closed, or has an invalid escape")
	}
	word, err := strconv.Unquote(prefix)
	if err != nil {
		return policy.Value{}, "", fmt.Errorf("the text %s has an invalid escape", shorten(prefix))
	}
	if !utf8.ValidString(word) || strings.ContainsRune(word, 0) {
		return policy.Value{}, "", fmt.Errorf("the text %s is not UTF-8, or contains NUL", shorten(prefix))
	}
	if len(word) > policy.MaxString {
		return policy.Value{}, "", fmt.Errorf("the text has %d bytes; at most %d are allowed", len(word), policy.MaxString)
	}
	return policy.String(word), text[len(prefix):], nil
}
