// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"shai.dev/monitor/internal/bug"
)

//go:embed library/*.pol
var libraryTexts embed.FS

// Library returns the standard policies, sorted by name. docs/policies.md describes each.
func Library() []*Template { return slices.Clone(library()) }

// LibraryTemplate returns one standard policy by its name.
func LibraryTemplate(name string) (*Template, bool) {
	i, found := slices.BinarySearchFunc(library(), name, func(t *Template, name string) int {
		return strings.Compare(t.name, name)
	})
	if !found {
		return nil, false
	}
	return library()[i], true
}

var library = sync.OnceValue(func() []*Template {
	names, err := fs.Glob(libraryTexts, "library/*.pol")
	if err != nil {
		bug.Found("%v", err)
	}
	var templates []*Template
	for _, name := range names {
		text, err := libraryTexts.ReadFile(name)
		if err != nil {
			bug.Found("%v", err)
		}
		template, err := CompileText(name, text)
		if err != nil {
			bug.Found("the standard library does not compile: %s", err.Error())
		}
		templates = append(templates, template)
	}
	slices.SortFunc(templates, func(a, b *Template) int { return strings.Compare(a.name, b.name) })
	return templates
})
