// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// judge sums a machine's features up: "none" when one of the needed ones is
// missing (then nothing starts), "partial" when only optional ones are.
func judge(needed, optional []Feature) string {
	for _, feature := range needed {
		if !feature.Present {
			return "none"
		}
	}
	for _, feature := range optional {
		if !feature.Present {
			return "partial"
		}
	}
	return "full"
}
