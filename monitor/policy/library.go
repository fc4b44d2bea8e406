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

// LibraryText returns the source of one standard policy, with what its comments say of it.
func LibraryText(name string) (string, bool) {
	text, err := libraryTexts.ReadFile("library/" + name + ".pol")
	return string(text), err == nil
}

// About returns the comments that stand before a policy, as lines.
func (t *Template) About() []string {
	return slices.DeleteFunc(slices.Clone(t.declaration.comments), func(line string) bool {
		return strings.HasPrefix(line, "SPDX-License-Identifier:")
	})
}

// ParameterTypes returns the types of the parameters, in order: string, integer or time.
func (t *Template) ParameterTypes() []string {
	types := make([]string, len(t.types))
	for i, kind := range t.types {
		types[i] = typeNames[kind]
	}
	return types
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
