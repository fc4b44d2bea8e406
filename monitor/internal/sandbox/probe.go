// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
)

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

// users examines whether tasks can run as users of their own.
func users() Feature {
	id := os.Geteuid()
	feature := Feature{Name: "users of their own", Found: "the superuser", Needed: "the superuser's rights",
		Present: id == 0,
		Effect:  "tasks run as users of their own, and in a group of their pipeline"}
	if id != 0 {
		feature.Found = fmt.Sprintf("user %d, which all tasks run as", id)
	}
	return feature
}
