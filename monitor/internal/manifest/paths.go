// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"regexp"
	"strings"
)

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// placeholders lists the names within braces.
func placeholders(text string) []string {
	var list []string
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		list = append(list, match[1])
	}
	return list
}

// conduitPath checks a pattern and the arguments that take their values from it.
func (c *checker) conduitPath(o *object, at string, conduit Conduit, path ConduitPath) {
	kind := conduit.Kind
	if path.Path == "" {
		return // reported by the decoder
	}
	if kind == KindFile {
		c.pipelinePath(o, at+".path", path.Path)
	}
	c.segments(o, at+".path", kind, path.Path)
	found := placeholders(path.Path)
	c.unique(o, at+".path", found)
	for _, name := range found {
		if !isVariableName(name) {
			c.fail(o, at+".path", "", "{%s} is not a placeholder; expected letters, digits and underscores", name)
		}
	}
	if rest := placeholder.ReplaceAllString(path.Path, ""); strings.ContainsAny(rest, "{}") {
		c.fail(o, at+".path", "", "%q has an unmatched brace", path.Path)
	}
	c.reference(o, at+".policy", path.Policy, found)
	c.supplied(o, at+".policy", path.Policy, grantOf(conduit))
	c.choices(o, at, conduit, path, found)
}

// choices checks the policies that principals may choose for single files.
func (c *checker) choices(o *object, at string, conduit Conduit, path ConduitPath, known []string) {
	if len(path.Choices) > 0 && (conduit.Kind != KindFile || !conduit.Ingress || conduit.Directory) {
		c.fail(o, at+".choices", "remove them, or set ingress", "only single files of ingress conduits have choices")
	}
	for i, choice := range path.Choices {
		at := fmt.Sprintf("%s.choices[%d]", at, i)
		c.reference(o, at+".policy", choice.Policy, known)
		c.supplied(o, at+".policy", choice.Policy, grantOf(conduit))
		for _, name := range placeholders(choice.By) {
			if !contains(known, name) {
				c.fail(o, at+".by", c.didYouMean(name, known), "the path has no placeholder {%s}", name)
			}
		}
		if rest := placeholder.ReplaceAllString(choice.By, ""); strings.ContainsAny(rest, "{}\n") {
			c.fail(o, at+".by", "", "%q is no principal; expected a name, or {name} of the path", choice.By)
		}
	}
}

// segments checks the positions of wildcards. Patterns are matched segment by segment, so
// "*" and "{owner}" never match a "/". A key of the store is not matched but built from
// an instance's parameters: it may have several placeholders in a segment, with text
// between them that keeps two users' keys apart.
func (c *checker) segments(o *object, at, kind, path string) {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		switch {
		case segment == "**" && i != len(segments)-1:
			c.fail(o, at, "", "** stands before the end of %q; expected it last", path)
		case segment != "*" && segment != "**" && strings.Contains(segment, "*"):
			c.fail(o, at, "", "%q mixes * with text; expected a whole segment", segment)
		case kind == KindTuple && strings.Contains(segment, "}{"):
			c.fail(o, at, "put a : between them", "%q has two placeholders with nothing between them", segment)
		case kind == KindFile && len(placeholders(segment)) > 1:
			c.fail(o, at, "put a / between them", "%q has two placeholders; expected at most one in a segment", segment)
		}
	}
}

// pipelinePath checks a path beneath the monitor's data directory. It refuses a path that
// leads out of the directory, or that is not the only name of its file.
func (c *checker) pipelinePath(o *object, at, path string) {
	switch {
	case !strings.HasPrefix(path, "/"):
		c.fail(o, at, "", "%q does not begin with /; expected a path beneath the data directory", path)
	case strings.ContainsRune(path, 0):
		c.fail(o, at, "", "%q contains a NUL byte", path)
	default:
		for segment := range strings.SplitSeq(path[1:], "/") {
			if segment == "" || segment == "." || segment == ".." {
				c.fail(o, at, "", "%q has the segment %q; expected a plain path", path, segment)
				return
			}
		}
	}
}
