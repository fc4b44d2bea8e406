// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"strings"

	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/policy"
)

// IsLog reports whether the conduit is of a type whose content is added at the end only, and
// consists of facts.
func (c Conduit) IsLog() bool {
	kind, err := content.Find(c.Type)
	return err == nil && kind.Log
}

// typed checks that only the monitor can write the conduits that have a type.
func (c *checker) typed(o *object, at string, conduit Conduit) {
	if conduit.Type == "" {
		return
	}
	for field, there := range map[string]bool{
		"directory": conduit.Directory, "ingress": conduit.Ingress, "egress": conduit.Egress,
	} {
		if there {
			c.fail(o, at+"."+field, "remove it, or remove type",
				"a conduit with a type has no %s: only the monitor writes it, one file or tuple at a time", field)
		}
	}
	if conduit.Access != nil && len(conduit.Access.Write) > 0 {
		c.fail(o, at+".access.write", "remove it: tasks call shai_write",
			"the tuples have a type, so only the monitor writes them")
	}
	if conduit.IsLog() {
		c.log(o, at, conduit)
	}
}

// log checks a log: the facts that it says are those of one file.
func (c *checker) log(o *object, at string, conduit Conduit) {
	if conduit.Kind != KindFile {
		c.fail(o, at+".type", "make it a file", "a log of type %s is a file", conduit.Type)
	}
	for i, path := range conduit.Paths {
		if strings.ContainsAny(path.Path, "*{") {
			c.fail(o, fmt.Sprintf("%s.paths[%d].path", at, i), "list each file with its whole path",
				"%q means many files; a log of type %s is one", path.Path, conduit.Type)
		}
	}
}

// grantOf returns how tasks get the conduits.
func grantOf(conduit Conduit) policy.Grant {
	typed := conduit.Type != ""
	switch {
	case conduit.Directory:
		return policy.GrantDirectory
	case conduit.Kind == KindTuple && typed:
		return policy.GrantTypedKeys
	case conduit.Kind == KindTuple:
		return policy.GrantKeys
	case typed:
		return policy.GrantTyped
	}
	return policy.GrantOpen
}

// isLog reports whether a conduit is a log of one of the pipelines.
func (c *checker) isLog(name string) bool {
	if c.logs == nil {
		c.logs = map[string]bool{}
		for _, o := range c.objects {
			pipeline, ok := o.value.(*Pipeline)
			if !ok {
				continue
			}
			for _, conduit := range pipeline.Spec.Conduits {
				for _, path := range conduit.Paths {
					c.logs[path.Path] = c.logs[path.Path] || conduit.IsLog()
				}
			}
		}
	}
	return c.logs[name]
}
