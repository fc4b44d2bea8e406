// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"path"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/pattern"
)

// Check returns an error if a pipeline asks for something that no task can get: it finds what
// would otherwise appear only when the bundle is in force.
func Check(resolved *manifest.Resolved) error {
	spec := resolved.Pipeline.Spec
	if err := checkDirectories(spec); err != nil {
		return err
	}
	for _, task := range resolved.Tasks {
		if _, err := layout(spec, becoming(task, resolved.Tasks)...); err != nil {
			return err
		}
	}
	return nil
}

// checkDirectories refuses directory conduits that contain paths with a stricter rule:
// the kernel grants a hierarchy as a whole, so the directory's rule would open those
// files.
func checkDirectories(spec manifest.PipelineSpec) error {
	for _, conduit := range spec.Conduits {
		if conduit.Kind != manifest.KindFile || !conduit.Directory {
			continue
		}
		for i, own := range conduit.Paths {
			directory := path.Clean(strings.TrimSuffix(own.Path, "**"))
			if strings.ContainsAny(directory, "*{") {
				return fmt.Errorf("conduit %s: directory %s may have no placeholder or wildcard before its **",
					conduit.Name, own.Path)
			}
			if other, found := ruleWithin(spec, directory, conduit.Name, i); found {
				return fmt.Errorf("conduit %s: directory %s contains %s of conduit %s, which a grant of the "+
					"directory would open as well; move one of them out of the other",
					conduit.Name, own.Path, other.path, other.conduit)
			}
		}
	}
	return nil
}

type rulePath struct{ conduit, path string }

// ruleWithin finds a path of the pipeline that may match something beneath a directory,
// except the path with this conduit and index.
func ruleWithin(spec manifest.PipelineSpec, directory, conduit string, index int) (rulePath, bool) {
	for _, other := range spec.Conduits {
		if other.Kind != manifest.KindFile {
			continue
		}
		for i, rule := range other.Paths {
			if other.Name == conduit && i == index {
				continue
			}
			fixed := pattern.FixedPart(rule.Path)
			if pattern.IsBeneath(directory, fixed) || fixed != rule.Path && pattern.IsBeneath(fixed, directory) &&
				!isBroader(rule.Path, directory) {
				return rulePath{other.Name, rule.Path}, true
			}
		}
	}
	return rulePath{}, false
}

// isBroader reports whether a rule's path is "<ancestor>/**". Beneath the directory, the
// directory's own rule is more specific and applies everywhere.
func isBroader(rule, directory string) bool {
	ancestor, whole := strings.CutSuffix(rule, "/**")
	return whole && !strings.ContainsAny(ancestor, "*{") && pattern.IsBeneath(ancestor, directory)
}
