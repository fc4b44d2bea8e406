// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// origins are the places that the facts of a source can come from.
var origins = []string{"file", "redis", "http", "inline"}

// origins lists those that the source has.
func (s FactSourceSpec) origins() []string {
	there := map[string]bool{"inline": s.Inline != nil, "file": s.File != nil, "redis": s.Redis != nil,
		"http": s.HTTP != nil}
	return slices.DeleteFunc(slices.Clone(origins), func(name string) bool { return !there[name] })
}

// Fetched reports whether the monitor has to fetch the facts.
func (s FactSourceSpec) Fetched() bool { return s.Redis != nil || s.HTTP != nil }

func (c *checker) factSource(o *object, source *FactSource) {
	spec := source.Spec
	given := spec.origins()
	switch {
	case o.broken:
		return
	case len(given) == 0:
		c.fail(o, "spec", "", "the source is missing; expected %s", alternatives(origins))
	case len(given) > 1:
		c.fail(o, "spec."+given[1], "make an object of each of them", "%s are given; expected one",
			strings.Join(given, " and "))
	}
	if spec.File != nil {
		c.pipelinePath(o, "spec.file.path", spec.File.Path)
	}
	if spec.Redis != nil {
		c.factRedis(o, spec.Redis)
	}
	if spec.HTTP != nil {
		c.factHTTP(o, spec.HTTP)
	}
	c.relations(o, spec)
	c.known(o, spec)
	for i, statement := range spec.Inline {
		if len(spec.Relations) > 0 {
			break // compared with their declarations
		}
		for j, tuple := range statement.Tuples {
			if got, want := len(tuple.Values()), len(statement.Tuples[0].Values()); got != want {
				c.fail(o, fmt.Sprintf("spec.inline[%d].tuples[%d]", i, j), "",
					"the number of its values is %d; that of the first tuple of %s is %d", got, statement.Says, want)
			}
		}
	}
}

// known reports facts that the monitor could not use: those of all sources are one set. What was in force
// before goes on without them.
func (c *checker) known(o *object, spec FactSourceSpec) {
	if c.stored {
		return
	}
	for i, statement := range spec.Inline {
		at := fmt.Sprintf("spec.inline[%d]", i)
		if !policy.IsName(statement.Says) {
			if err := c.facts.Check(statement.Conduit, statement.Says, policy.Tuple{}); err != nil {
				c.fail(o, at+".says", "", "%v", err)
			}
			continue
		}
		for j, tuple := range statement.Tuples {
			if len(tuple.Values()) != len(statement.Tuples[0].Values()) {
				continue // reported as such
			}
			if err := c.facts.Check(statement.Conduit, statement.Says, tuple); err != nil {
				c.fail(o, fmt.Sprintf("%s.tuples[%d]", at, j), "", "%v", err)
			}
		}
	}
}

func (c *checker) factRedis(o *object, redis *FactRedis) {
	c.machinePath(o, "spec.redis.socket", redis.Socket)
	switch {
	case len(redis.Keys) == 0 && redis.Stream == nil:
		c.fail(o, "spec.redis", "", "keys and stream are missing; expected one of them")
	case len(redis.Keys) > 0 && redis.Stream != nil:
		c.fail(o, "spec.redis.stream", "make an object of each of them", "keys and stream are both given; expected one")
	}
	for i, keys := range redis.Keys {
		at := fmt.Sprintf("spec.redis.keys[%d]", i)
		known := placeholders(keys.Pattern)
		if _, err := pattern.Parse(keys.Pattern); err != nil {
			c.fail(o, at+".pattern", "", "%v", err)
		}
		for _, name := range placeholders(keys.Conduit) {
			if !contains(known, name) {
				c.fail(o, at+".conduit", c.didYouMean(name, known), "{%s} stands for nothing here", name)
			}
		}
	}
}

func (c *checker) factHTTP(o *object, http *FactHTTP) {
	if http.CAFile != "" {
		c.machinePath(o, "spec.http.caFile", http.CAFile)
	}
	if strings.Contains(http.URL, "$(") {
		return // checked when it is replaced
	}
	if err := checkURL(http.URL); err != nil {
		c.fail(o, "spec.http.url", "", "%v", err)
	}
}

// checkURL refuses an address that facts cannot be fetched from. It also refuses
// credentials, which do not belong in a manifest.
func checkURL(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL", shorten(text))
	case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
		return fmt.Errorf("%q is not a URL; expected a form such as https://facts.example/friends", shorten(text))
	case parsed.User != nil:
		return fmt.Errorf("the URL contains a user name or password, which do not belong in a manifest")
	}
	return nil
}

// machinePath checks a path of the machine, which may begin with a variable.
func (c *checker) machinePath(o *object, at, path string) {
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "$(") {
		c.fail(o, at, "", "%q does not begin with /; expected an absolute path", path)
	}
}
