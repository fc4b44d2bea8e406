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

// libraryDeclarations are the library's policies in their source form, by name.
var libraryDeclarations = sync.OnceValue(func() map[string]*Declaration {
	declarations := map[string]*Declaration{}
	names, err := fs.Glob(libraryTexts, "library/*.pol")
	if err != nil {
		bug.Found("%v", err)
	}
	for _, name := range names {
		text, err := libraryTexts.ReadFile(name)
		if err != nil {
			bug.Found("%v", err)
		}
		file, err := ParseOne(name, text)
		if err != nil {
			bug.Found("the standard library does not parse: %v", err)
		}
		declarations[file.Policies[0].Name] = file.Policies[0]
	}
	return declarations
})

var library = sync.OnceValue(func() []*Template {
	var files []*File
	for name, declaration := range libraryDeclarations() {
		files = append(files, &File{Name: LibraryPrefix + name, Policies: []*Declaration{declaration}})
	}
	templates, err := CompileFiles(files...)
	if err != nil {
		bug.Found("the standard library does not compile: %v", err)
	}
	slices.SortFunc(templates, func(a, b *Template) int { return strings.Compare(a.name, b.name) })
	return templates
})
