// SPDX-License-Identifier: BSD-2-Clause

// Package shape tells which characters a person sees. Names of files and users are shown with
// escapes for all others, so that none looks like another by what it does not show. Pure.
package shape

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are empty by their glyph and not by any property of Unicode: braille without dots, the
// blanks and fillers of hieroglyphs and of Khitan, a note without a head, and the place of an object.
const blanks = "\u2800\U00013441\U00013442\U00016fe4\U0001d159\ufffc"

// Has reports whether a character has a shape of its own. By Unicode's properties these have none:
// control, format, private, surrogate and unassigned characters (C), spaces and separators but for
// " " (Z), and what programs may ignore (Default_Ignorable_Code_Point: fillers of Hangul,
// selectors of variations, joiners). The explain page's shown.js has the same rule; testdata is
// for both.
func Has(character rune) bool {
	return strconv.IsPrint(character) && !strings.ContainsRune(blanks, character) &&
		!unicode.In(character, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Visible writes what has no shape as in a Go string: \u202e, \n, \xff for a byte that is not of UTF-8.
func Visible(text string) string {
	var shown strings.Builder
	for len(text) > 0 {
		character, size := utf8.DecodeRuneInString(text)
		switch {
		case character == utf8.RuneError && size == 1:
			shown.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case Has(character):
			shown.WriteRune(character)
		default:
			shown.WriteString(strings.Trim(strconv.QuoteRuneToASCII(character), "'"))
		}
		text = text[size:]
	}
	return shown.String()
}

// JSON returns a value as indented JSON in which characters without a shape are escaped: a
// terminal obeys some of them. Programs read the same value.
func JSON(value any) (string, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, character := range string(text) {
		switch {
		case character == '\n' || Has(character):
			out.WriteRune(character)
		case character > 0xffff:
			first, second := utf16.EncodeRune(character)
			fmt.Fprintf(&out, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&out, `\u%04x`, character)
		}
	}
	out.WriteByte('\n')
	return out.String(), nil
}
