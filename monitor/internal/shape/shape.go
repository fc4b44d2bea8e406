// SPDX-License-Identifier: BSD-2-Clause

// Package shape tells which characters a person sees. Names of files and users are shown with
// escapes for all others, so that none looks like another. Pure.
package shape

import (
	"strconv"
	"strings"
	"unicode"
)

// blank is braille without dots: printable by its category, and empty.
const blank = '\u2800'

// Has reports whether a character has a shape of its own. Control characters, spaces but for " ",
// marks of direction, and what Unicode lets programs ignore (Default_Ignorable_Code_Point: fillers
// of Hangul, selectors of variations) have none. The explain page's shown.js has the same rule.
func Has(character rune) bool {
	return strconv.IsPrint(character) && character != blank &&
		!unicode.In(character, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Escape writes a character as in a Go string: \u202e.
func Escape(character rune) string { return strings.Trim(strconv.QuoteRuneToASCII(character), "'") }
