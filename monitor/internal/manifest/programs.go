// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// programField is the field of a task's program.
const programField = "spec.command[0]"

// program checks the path of a task's program, as far as it is known without variables.
func (c *checker) program(o *object, spec TaskSpec) {
	if len(spec.Command) == 0 || spec.Command[0] == "" {
		return // reported by the decoder
	}
	if err := CheckMachinePath(withoutVariables(spec.Command[0])); err != nil {
		c.fail(o, programField, "", "%q %v", spec.Command[0], err)
	}
}

// withoutVariables replaces variables by names. Their values, which are checked when they
// are known, may begin with a slash.
func withoutVariables(path string) string {
	text := variable.ReplaceAllString(path, "variable")
	if strings.HasPrefix(path, "$(") && text != path {
		return "/" + text
	}
	return text
}

// CheckMachinePath refuses a path of the machine that has a second spelling, or that depends
// on the monitor's working directory: paths are compared as text, so each must have one meaning.
// The error continues a sentence that begins with the path.
func CheckMachinePath(path string) error {
	switch {
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("contains a NUL byte; expected an absolute path")
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("is not an absolute path; begin it with /")
	case path == "/":
		return nil
	}
	segments := strings.Split(path[1:], "/")
	if i := slices.IndexFunc(segments, func(s string) bool { return s == "" || s == "." || s == ".." }); i >= 0 {
		return fmt.Errorf("has the segment %q; write the path without it", segments[i])
	}
	return nil
}
