// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// programs checks the machine's paths in a task: those of its program and of its runtime.
func (c *checker) programs(o *object, spec TaskSpec) {
	for _, one := range pathsOfMachine(spec) {
		if one.path == "" {
			continue // reported by the decoder
		}
		if err := checkMachinePath(withoutVariables(one.path)); err != nil {
			c.fail(o, one.field, "", "%q %v", one.path, err)
		}
	}
}

type machinePath struct{ field, path string }

func pathsOfMachine(spec TaskSpec) []machinePath {
	var paths []machinePath
	if len(spec.Command) > 0 {
		paths = append(paths, machinePath{"spec.command[0]", spec.Command[0]})
	}
	for i, root := range spec.Runtime {
		paths = append(paths, machinePath{fmt.Sprintf("spec.runtime[%d]", i), root})
	}
	return paths
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

// checkMachinePath refuses a path that has a second spelling, or that depends on the
// monitor's working directory: paths are compared as text, so each must have one meaning.
func checkMachinePath(path string) error {
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
