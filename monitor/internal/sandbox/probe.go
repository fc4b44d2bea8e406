// SPDX-License-Identifier: BSD-2-Clause

package sandbox

// judge rates a machine by its features: "none" if a needed one is missing (then nothing
// starts), "partial" if only optional ones are, else "full".
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
