// SPDX-License-Identifier: BSD-2-Clause

package pattern

import (
	"path"
	"strings"
)

// FixedPart returns the directory before a pattern's first wildcard or placeholder.
func FixedPart(pattern string) string {
	if i := strings.IndexAny(pattern, "*{"); i >= 0 {
		return path.Clean(pattern[:strings.LastIndexByte(pattern[:i], '/')+1])
	}
	return pattern
}

// IsBeneath reports whether name is directory or lies beneath it. It only compares the
// names.
func IsBeneath(directory, name string) bool {
	return name == directory || strings.HasPrefix(name, strings.TrimSuffix(directory, "/")+"/")
}
