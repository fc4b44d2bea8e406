// SPDX-License-Identifier: BSD-2-Clause

package page

import "shai.dev/monitor/internal/shape"

// longest is the number of characters after which a text is cut.
const longest = 1000

// visible shows what has no shape of its own as an escape. Users choose names; one must not look
// like another, or change the order of what stands beside it. A long text is cut.
func visible(text string) string {
	count := 0
	for at := range text {
		if count == longest {
			return shape.Visible(text[:at]) + "…"
		}
		count++
	}
	return shape.Visible(text)
}

// short is visible for a place that has room for few characters.
func short(name string, most int) string {
	characters := []rune(visible(name))
	if len(characters) <= most {
		return string(characters)
	}
	return string(characters[:most-1]) + "…"
}
