// SPDX-License-Identifier: BSD-2-Clause

package shape

import "testing"

// The same characters are in test_page.py, for the page.
func TestHas(t *testing.T) {
	const invisible = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u200b\u200d\u202e\u2060\u2800\u3000\u3164" +
		"\ufe00\ufe0f\ufeff\uffa0\U0001d173\U000e0041\U000e0100\n\u00a0\u2028"
	for _, character := range invisible {
		if Has(character) {
			t.Errorf("%U has a shape", character)
		}
	}
	for _, character := range " aß日ע🙂\u0301\u2801ᄀ“" {
		if !Has(character) {
			t.Errorf("%U has no shape", character)
		}
	}
}
