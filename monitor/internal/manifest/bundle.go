// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/policy"
)

// Bundle is a set of objects that fit together, immutable and identified by its content.
// Variables are not replaced in it yet: their values differ from machine to machine,
// while the bundle is the same on all of them.
type Bundle struct {
	objects   []*object // by kind, then name
	enforced  []*Policy // by name
	canonical []byte
	hash      string
	around    policy.Surroundings
}

// Over merges the objects of s into those of a bundle: an object of the same kind and
// name replaces the bundle's, the others stay. base may be nil.
func (s *Set) Over(base *Bundle) *Set {
	if base == nil {
		return s
	}
	replaced := map[string]bool{}
	for _, o := range s.objects {
		replaced[o.key()] = true
	}
	merged := &Set{errors: s.errors}
	for _, o := range base.objects {
		if !replaced[o.key()] {
			merged.objects = append(merged.objects, o)
		}
	}
	merged.objects = append(merged.objects, s.objects...)
	return merged
}

// document is an object in its canonical form.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Content
}

// Content is the part of a document that depends on the kind.
type Content struct {
	Metadata any `json:"metadata"`
	Spec     any `json:"spec"`
}

func (o *object) content() Content {
	switch value := o.value.(type) {
	case *Policy:
		return Content{value.Metadata, value.Spec.enforced()}
	case *FactSource:
		return Content{value.Metadata, value.Spec}
	case *Principal:
		return Content{value.Metadata, value.Spec}
	case *Task:
		return Content{value.Metadata, value.Spec}
	case *Pipeline:
		return Content{value.Metadata, value.Spec.enforced()}
	}
	bug.Found("no content for %T", o.value)
	return Content{}
}

// canonical returns the object as JSON with sorted keys and no white space.
func (o *object) canonical() ([]byte, error) {
	plain, err := json.Marshal(document{APIVersion: APIVersion, Kind: o.kind, Content: o.content()})
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", o.label(), err)
	}
	// encoding/json sorts the keys of a map: the hash must not depend on the order in
	// which this package declares its fields.
	reader := json.NewDecoder(bytes.NewReader(plain))
	reader.UseNumber()
	var tree any
	if err := reader.Decode(&tree); err != nil {
		return nil, fmt.Errorf("render %s: %w", o.label(), err)
	}
	var out bytes.Buffer
	writer := json.NewEncoder(&out)
	writer.SetEscapeHTML(false)
	if err := writer.Encode(tree); err != nil {
		return nil, fmt.Errorf("render %s: %w", o.label(), err)
	}
	return out.Bytes(), nil
}

// render writes one canonical document per line and hashes them all.
func render(objects []*object) (*Bundle, error) {
	var out bytes.Buffer
	for _, o := range objects {
		line, err := o.canonical()
		if err != nil {
			return nil, err
		}
		// A line of JSON is a YAML document, so the stored form is itself a manifest.
		out.WriteString("---\n")
		out.Write(line)
	}
	sum := sha256.Sum256(out.Bytes())
	return &Bundle{objects: objects, canonical: out.Bytes(), hash: hex.EncodeToString(sum[:])}, nil
}

// Canonical returns the bundle's only rendering. [Restore] reads it.
func (b *Bundle) Canonical() []byte { return bytes.Clone(b.canonical) }

// Hash returns the SHA-256 of the canonical rendering, in lower-case hexadecimal.
func (b *Bundle) Hash() string { return b.hash }

// Len returns the number of objects.
func (b *Bundle) Len() int { return len(b.objects) }

// Restore reads a canonical rendering. It refuses any other: such bytes were not written
// by this package, or have been altered. It reads what an earlier version wrote, too, even
// if [Parse] refuses it now: see [FormerRuntime].
func Restore(canonical []byte) (*Bundle, error) {
	set := &Set{stored: true}
	set.read(Source{Name: "bundle", Text: string(canonical)})
	b, err := set.Bundle()
	if err != nil {
		return nil, fmt.Errorf("restore bundle: %w", err)
	}
	if !bytes.Equal(b.canonical, canonical) {
		return nil, fmt.Errorf("restore bundle: the stored bytes are not in canonical form; apply the manifests again")
	}
	return b, nil
}

// all lists the bundle's objects of one kind by name. The objects are shared and must not
// be altered.
func all[T any](b *Bundle) []*T {
	var list []*T
	for _, o := range b.objects {
		if value, ok := o.value.(*T); ok {
			list = append(list, value)
		}
	}
	return list
}

// Policies lists the bundle's policies by name, as they were written. Callers must not alter them.
func (b *Bundle) Policies() []*Policy { return all[Policy](b) }

// EnforcedPolicies lists the policies that have to be enforced, by name: those of the bundle, with the
// clauses that they include in their text, and those of the standard library to which it refers.
// Callers must not alter them.
func (b *Bundle) EnforcedPolicies() []*Policy { return b.enforced }

// FactSources lists the bundle's fact sources by name. Callers must not alter them.
func (b *Bundle) FactSources() []*FactSource { return all[FactSource](b) }

// Principals lists the bundle's principals by name. Callers must not alter them.
func (b *Bundle) Principals() []*Principal { return all[Principal](b) }

// Tasks lists the bundle's tasks by name, with variables as they were written. Callers must not alter them.
func (b *Bundle) Tasks() []*Task { return all[Task](b) }

// Pipelines lists the bundle's pipelines by name. Callers must not alter them.
func (b *Bundle) Pipelines() []*Pipeline { return all[Pipeline](b) }
