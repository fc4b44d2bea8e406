// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/internal/manifest"
)

// Named are the runtimes that whoever started the monitor has given, by name: absolute paths, each
// with one spelling. Authors of tasks choose among them by name, and add none.
type Named map[string][]string

// Of returns the paths of the runtime that a task names: nil if it names none. It fails if the
// monitor has no such runtime, and for a task of a stored bundle that still lists paths. The error
// continues a sentence that begins with the task.
func (n Named) Of(spec manifest.TaskSpec) ([]string, error) {
	if len(spec.Runtime) > 0 {
		return nil, fmt.Errorf("lists the paths of its runtime in spec.runtime, as a task no longer can; %s", manifest.ChooseRuntime)
	}
	if spec.RuntimeName == "" {
		return nil, nil
	}
	paths, known := n[spec.RuntimeName]
	if !known {
		return nil, fmt.Errorf("names runtime %s, and there is %s; name another one in spec.runtimeName, or have it defined: "+
			"on Kubernetes in spec.runtimes of the JailPool, else with shai monitor --runtime %s=PATH,…",
			spec.RuntimeName, n.list(), spec.RuntimeName)
	}
	return paths, nil
}

func (n Named) list() string {
	if len(n) == 0 {
		return "none"
	}
	return "only " + strings.Join(slices.Sorted(maps.Keys(n)), ", ")
}

// Define reads definitions of the form NAME=PATH,PATH… The only variables in them are those
// of values; what manifests define has no effect. A comma always ends a path, but the value of a variable
// may contain one.
func Define(definitions []string, values map[string]string) (Named, error) {
	named := Named{}
	for _, one := range definitions {
		name, list, ok := strings.Cut(one, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("%q: expected NAME=PATH,PATH…", one)
		case !manifest.IsLabel(name):
			return nil, fmt.Errorf("%q: %q is not a name; expected lower-case letters, digits and inner hyphens, at most 63",
				one, name)
		case named[name] != nil:
			return nil, fmt.Errorf("%s is given twice; list all of its paths in one", name)
		}
		paths, err := pathsOf(strings.Split(list, ","), values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		named[name] = paths
	}
	return named, nil
}

func pathsOf(texts []string, values map[string]string) ([]string, error) {
	paths := make([]string, 0, len(texts))
	for _, text := range texts {
		path, undefined := manifest.Replace(text, values)
		if len(undefined) > 0 {
			return nil, fmt.Errorf("%q: $(%s) is not defined; give --define %s=…", text, undefined[0], undefined[0])
		}
		if err := manifest.CheckMachinePath(path); err != nil {
			hint := ""
			if len(texts) > 1 {
				hint = " (a comma separates paths; give one that contains a comma as the value of a variable)"
			}
			return nil, fmt.Errorf("%q %w%s", path, err, hint)
		}
		if slices.Contains(paths, path) {
			return nil, errors.New(path + " is listed twice; keep one of them")
		}
		paths = append(paths, path)
	}
	return paths, nil
}
