// SPDX-License-Identifier: BSD-2-Clause

// Package edition says which version of Shai a program is.
package edition

import (
	"fmt"
	"runtime/debug"
)

// release is set by the linker when a release is built.
var release = ""

// Version returns the release, or the revision that a development build was made from.
func Version() string {
	if release != "" {
		return release
	}
	if r := Revision(); r != "" {
		return fmt.Sprintf("development (%.12s)", r)
	}
	return "development"
}

// Revision returns the revision of the source, "" if the build does not know it.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
