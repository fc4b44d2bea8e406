// SPDX-License-Identifier: BSD-2-Clause

package page

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"shai.dev/monitor/internal/shape"
)

// longest is the number of characters after which a text is cut.
const longest = 1000

// visible shows what has no shape of its own, as in a Go string: control characters, line
// breaks, and marks of direction such as U+202E. Users choose names; one must not look
// like another, or change the order of what stands beside it. A long text is cut.
func visible(text string) string {
	var shown strings.Builder
	for count := 0; len(text) > 0; count++ {
		character, size := utf8.DecodeRuneInString(text)
		switch {
		case count == longest:
			return shown.String() + "…"
		case character == utf8.RuneError && size == 1:
			shown.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case shape.Has(character), character == narrowSpace, character == joiner:
			shown.WriteRune(character)
		default:
			shown.WriteString(shape.Escape(character))
		}
		text = text[size:]
	}
	return shown.String()
}

const (
	narrowSpace = '\u202f' // between thousands
	joiner      = '\u200d' // within an emoji
)

// short is visible for a place that has room for few characters.
func short(name string, most int) string {
	characters := []rune(visible(name))
	if len(characters) <= most {
		return string(characters)
	}
	return string(characters[:most-1]) + "…"
}
