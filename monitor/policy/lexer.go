// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Position is a position in a policy's text: line and column in bytes, from 1.
type Position struct{ Line, Column int32 }

// Range is a piece of a policy's text: from From up to, not including, To.
type Range struct{ From, To Position }

type tokenKind uint8

const (
	endOfText tokenKind = iota
	nameToken           // lower-case word, keywords included
	variableToken
	anonymousToken // _
	valueToken     // string, number or time
	symbolToken    // ( ) { } , . .. @ : :-
	foreignToken   // an operator of other languages, such as = or &&
)

type token struct {
	position Position
	kind     tokenKind
	text     string // as written; for strings, quoted
	value    Value  // of a valueToken
}

// rangeOf is where the token stands. No token goes on in another line.
func (t token) rangeOf() Range {
	to := t.position
	to.Column += int32(len(t.text)) //nolint:gosec // a text is limited far below 2^31 bytes
	return Range{t.position, to}
}

// String returns the token's name in messages.
func (t token) String() string {
	if t.kind == endOfText {
		return "end of text"
	}
	if len(t.text) > 40 {
		return strings.ToValidUTF8(t.text[:40], "") + "…"
	}
	if t.kind == valueToken {
		return t.text
	}
	return "`" + t.text + "`"
}

// lexer splits a text into tokens. It collects comments for the parser.
type lexer struct {
	filename string
	text     string
	offset   int
	line     int32
	lineFrom int // offset of the line's first byte
	comments []string
}

func (l *lexer) position() Position {
	return Position{l.line, int32(l.offset-l.lineFrom) + 1} //nolint:gosec // a text is limited far below 2^31 bytes
}

// failure returns an error about what stands from position to where the lexer is, if that is
// on one line.
func (l *lexer) failure(position Position, expected, hint, format string, arguments ...any) *Error {
	to := position
	if here := l.position(); here.Line == position.Line && here.Column > position.Column {
		to = here
	}
	return newError(l.filename, Range{position, to}, CodeSyntax, expected, hint, format, arguments...)
}

func (l *lexer) skipSpace() {
	for l.offset < len(l.text) {
		switch c := l.text[l.offset]; {
		case c == '\n':
			l.offset++
			l.line++
			l.lineFrom = l.offset
		case c == ' ' || c == '\t' || c == '\r':
			l.offset++
		case c == '#':
			comment, _, _ := strings.Cut(l.text[l.offset+1:], "\n")
			l.offset += 1 + len(comment)
			l.comments = append(l.comments, strings.TrimSpace(comment))
		default:
			return
		}
	}
}

// next returns the next token. After an error it has moved past the offending bytes, so
// that the next call makes progress.
func (l *lexer) next() (token, *Error) {
	l.skipSpace()
	position := l.position()
	if l.offset == len(l.text) {
		return token{position: position}, nil
	}
	rest := l.text[l.offset:]
	switch c := rest[0]; {
	case c >= 'a' && c <= 'z':
		return l.take(nameToken, nameLength(rest)), nil
	case c >= 'A' && c <= 'Z':
		return l.take(variableToken, wordLength(rest)), nil
	case c == '_':
		return l.underscore(wordLength(rest))
	case c == '"':
		return l.quoted()
	case c >= '0' && c <= '9', c == '-' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return l.number()
	}
	for _, symbol := range []string{":-", ":", "..", "(", ")", "{", "}", ",", ".", "@"} {
		if strings.HasPrefix(rest, symbol) {
			return l.take(symbolToken, len(symbol)), nil
		}
	}
	for _, operator := range foreignOperators {
		if strings.HasPrefix(rest, operator) {
			return l.take(foreignToken, len(operator)), nil
		}
	}
	return l.stray()
}

func (l *lexer) stray() (token, *Error) {
	position := l.position()
	character, size := utf8.DecodeRuneInString(l.text[l.offset:])
	l.offset += size
	if character == utf8.RuneError && size == 1 {
		return token{}, l.failure(position, "", "save the file as UTF-8", "byte %#02x is not UTF-8", l.text[l.offset-1])
	}
	hint := "remove it, or write it within a string"
	switch character {
	case '\'', '‘', '’', '“', '”':
		hint = `strings stand in straight double quotes, "like this"`
	case '\ufeff':
		hint = "it is a byte order mark: save the file as UTF-8 without one"
	case '/', '%':
		hint = "comments start with #"
	}
	return token{}, l.failure(position, "", hint, "unexpected character %q", character)
}

func (l *lexer) take(kind tokenKind, length int) token {
	taken := token{position: l.position(), kind: kind, text: l.text[l.offset : l.offset+length]}
	l.offset += length
	return taken
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func wordLength(text string) int {
	length := 1
	for length < len(text) && isWord(text[length]) {
		length++
	}
	return length
}

// nameLength accepts hyphens between words too: there is no minus operator, and
// Kubernetes names contain them.
//
// A policy of the standard library is one name, too: library/friends.
func nameLength(text string) int {
	rest, ofLibrary := strings.CutPrefix(text, LibraryPrefix)
	if ofLibrary && rest != "" && rest[0] >= 'a' && rest[0] <= 'z' {
		return len(LibraryPrefix) + nameLength(rest)
	}
	length := wordLength(text)
	for length+1 < len(text) && text[length] == '-' && isWord(text[length+1]) {
		length += 1 + wordLength(text[length+1:])
	}
	return length
}

// IsName reports whether a text is one name of the language, such as that of a relation: a small letter, then
// letters, digits, `_` and hyphens between them.
func IsName(text string) bool {
	return text != "" && text[0] >= 'a' && text[0] <= 'z' && nameLength(text) == len(text) &&
		!strings.HasPrefix(text, LibraryPrefix)
}

// underscore reads `_`, or a name for people: `_Reader` is as anonymous as `_`.
func (l *lexer) underscore(length int) (token, *Error) {
	position := l.position()
	word := l.take(anonymousToken, length)
	if length == 1 || word.text[1] >= 'A' && word.text[1] <= 'Z' {
		return word, nil
	}
	return word, l.failure(position, "`_` alone, or `_` and a capital as in `_Reader`", "",
		"the name of an unused variable is wrong: %s", word)
}

func (l *lexer) quoted() (token, *Error) {
	position := l.position()
	line, _, _ := strings.Cut(l.text[l.offset:], "\n")
	length := 1
	for length < len(line) && line[length] != '"' {
		if line[length] == '\\' {
			length++
		}
		length++
	}
	if length >= len(line) {
		l.offset += len(line)
		return token{}, l.failure(position, "", `close it with "; a line break inside a string is written \n`,
			"the string is not closed on its line")
	}
	taken := l.take(valueToken, length+1)
	text, err := strconv.Unquote(taken.text)
	if err != nil {
		return token{}, l.failure(position, "", `escapes are \" \\ \n \t \xHH \uHHHH`,
			"the string %s has an invalid escape", taken)
	}
	if len(text) > MaxString {
		mistake := l.failure(position, "", "use a shorter one", "the string has %d bytes, the limit is %d", len(text), MaxString)
		return token{}, mistake.limited(ErrStringTooLong)
	}
	taken.value = String(text)
	return taken, nil
}

// number reads an integer or an RFC 3339 time. "0..L" is an integer and a range.
func (l *lexer) number() (token, *Error) {
	position := l.position()
	rest := l.text[l.offset:]
	if len(rest) > 4 && rest[4] == '-' && rest[0] != '-' {
		return l.instant()
	}
	length := 1
	for length < len(rest) && isWord(rest[length]) {
		length++
	}
	taken := l.take(valueToken, length)
	number, err := strconv.ParseInt(taken.text, 10, 64)
	if err != nil {
		return token{}, l.failure(position, fmt.Sprintf("a whole number from %d to %d", math.MinInt64, math.MaxInt64),
			"",
			"%s is not a 64-bit integer", taken)
	}
	taken.value = Integer(number)
	return taken, nil
}

func (l *lexer) instant() (token, *Error) {
	position := l.position()
	rest := l.text[l.offset:]
	length := 0
	for length < len(rest) && (isWord(rest[length]) || strings.IndexByte("-:+", rest[length]) >= 0 ||
		rest[length] == '.' && length+1 < len(rest) && rest[length+1] >= '0' && rest[length+1] <= '9') {
		length++
	}
	taken := l.take(valueToken, length)
	instant, err := time.Parse(time.RFC3339Nano, taken.text)
	if err != nil {
		return token{}, l.failure(position, "a time as in RFC 3339, such as 2027-01-31T00:00:00Z", "",
			"%s is not a time", taken)
	}
	if instant.Before(earliest) || instant.After(latest) {
		return token{}, l.failure(position, "a time between the years 1678 and 2262", "", "%s is out of range", taken)
	}
	taken.value = Time(instant)
	return taken, nil
}
