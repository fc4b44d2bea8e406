// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// Policies are compiled policies by name: the declared one, or for bare clauses that of the
// file, or of manifests metadata.name.
type Policies map[string]*policy.Template

// ReadPolicies reads the policies of a policy file (.pol), or of the manifests in a file or
// directory. A mistake is a [policy.Errors] or a [manifest.Errors], with every one found.
func ReadPolicies(path string) (Policies, error) {
	if filepath.Ext(path) != ".pol" {
		return policiesOfManifests(path)
	}
	text, err := plainfile.ReadStart(path, policy.MaxText)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return CompilePolicies(path, text)
}

// CompilePolicies compiles the text of a policy file, among the files beside it if it includes
// policies of these.
func CompilePolicies(path string, text []byte) (Policies, error) {
	file, err := policy.Parse(path, text)
	if err != nil {
		return nil, err
	}
	files := []*policy.File{file}
	if includesOthers(file) {
		files = append(files, besidesOf(path)...)
	}
	templates, err := policy.CompileFiles(files...)
	if err != nil {
		return nil, err
	}
	policies := Policies{}
	for _, template := range templates[:len(file.Policies)] {
		name := template.Name()
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
		policies[name] = template
	}
	return policies, nil
}

// includesOthers reports whether a file includes policies that neither it nor the library has.
func includesOthers(file *policy.File) bool {
	own := map[string]bool{}
	for _, declaration := range file.Policies {
		own[declaration.Name] = true
	}
	for _, declaration := range file.Policies {
		for _, include := range declaration.Includes {
			if !own[include.Name] && !strings.HasPrefix(include.Name, policy.LibraryPrefix) {
				return true
			}
		}
	}
	return false
}

// besidesOf parses the other policy files of a directory, but for those with mistakes.
func besidesOf(path string) []*policy.File {
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.pol"))
	if err != nil {
		return nil
	}
	var files []*policy.File
	for _, name := range names {
		text, err := plainfile.ReadStart(name, policy.MaxText)
		if err != nil || filepath.Base(name) == filepath.Base(path) {
			continue
		}
		if file, err := policy.Parse(name, text); err == nil {
			files = append(files, file)
		}
	}
	return files
}

func policiesOfManifests(path string) (Policies, error) {
	sources, err := manifest.Read(noInput{}, path)
	if err != nil {
		return nil, err
	}
	set := manifest.Parse(sources...)
	bundle, err := set.Bundle()
	if err != nil {
		return nil, err
	}
	var files []*policy.File
	for _, one := range bundle.Policies() {
		file, err := policy.ParseOne(one.Metadata.Name, []byte(one.Spec.Text))
		if err != nil {
			return nil, err
		}
		file.Policies[0].Name = one.Metadata.Name // by which others include it
		file.Accepted = true
		files = append(files, file)
	}
	templates, err := policy.CompileFiles(files...)
	if err != nil {
		return nil, err
	}
	policies := Policies{}
	for _, template := range templates {
		policies[template.Name()] = template
	}
	for _, text := range set.PolicyTexts() {
		policies[text.Object] = policies[text.Object].Placed(text.Place)
	}
	return policies, nil
}

// noInput is the standard input of a command that has none.
type noInput struct{}

func (noInput) Read([]byte) (int, error) { return 0, io.EOF }

// Only returns the policy with this name; without a name the only one there is.
func (p Policies) Only(name string) (*policy.Template, error) {
	names := slices.Sorted(maps.Keys(p))
	switch {
	case name == "" && len(names) == 1:
		return p[names[0]], nil
	case name == "":
		return nil, fmt.Errorf("there are %d policies; name one of %s", len(names), strings.Join(names, ", "))
	case p[name] == nil:
		return nil, fmt.Errorf("there is no policy %q; expected %s", name, strings.Join(names, ", "))
	}
	return p[name], nil
}
