// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"shai.dev/monitor/internal/shape"
)

// printable escapes what has no shape of its own, as in a Go string: control characters,
// line breaks, spaces but for " ", marks of direction such as U+202E, and fillers. Tasks choose the
// names of files, and users write facts. A name must neither control the terminal of the
// person who reads it nor look like another name or another line.
func printable(text string) string {
	var shown strings.Builder
	for len(text) > 0 {
		character, size := utf8.DecodeRuneInString(text)
		switch {
		case character == utf8.RuneError && size == 1:
			shown.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case shape.Has(character):
			shown.WriteRune(character)
		default:
			shown.WriteString(shape.Escape(character))
		}
		text = text[size:]
	}
	return shown.String()
}

// printableLines is printable for a text of several lines, whose line breaks stay.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}
