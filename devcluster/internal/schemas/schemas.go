// SPDX-License-Identifier: BSD-2-Clause

// Package schemas writes the kinds of an API server as JSON schemas, one file per kind,
// in the form that kubeconform reads.
package schemas

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
)

// Write writes a schema for each kind that the API server serves, including custom
// resources, and returns their number. It makes the folder if it is missing. It replaces
// files of the same name and keeps all others.
func Write(config *rest.Config, folder string) (int, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a client of the API server: %w", err)
	}
	kinds, err := served(client)
	if err != nil {
		return 0, err
	}
	documents, err := client.OpenAPIV3().Paths()
	if err != nil {
		return 0, fmt.Errorf("ask the API server for its schemas: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // schemas are for everybody to read
		return 0, fmt.Errorf("make the folder for schemas: %w", err)
	}
	count := 0
	for path, document := range documents {
		components, err := components(document)
		if err != nil {
			return count, fmt.Errorf("ask the API server for the schemas of %s: %w", path, err)
		}
		for name, component := range components {
			for _, kind := range kindsOf(component) {
				if !kinds.Has(kind) || path != documentOf(kind.GroupVersion()) {
					continue // another document may have it
				}
				if err := write(folder, kind, standalone(kind, name, components)); err != nil {
					return count, err
				}
				count++
			}
		}
	}
	return count, nil
}

// documentOf returns the path of the document that describes a group's kinds.
func documentOf(version schema.GroupVersion) string {
	if version.Group == "" {
		return "api/" + version.Version
	}
	return "apis/" + version.String()
}

// served returns the kinds that have objects. The documents also describe others, such as
// lists and options of requests.
func served(client discovery.DiscoveryInterface) (sets.Set[schema.GroupVersionKind], error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	kinds := sets.New[schema.GroupVersionKind]()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("read the API server's kinds: %w", err)
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") { // not a subresource
				kinds.Insert(version.WithKind(resource.Kind))
			}
		}
	}
	return kinds, nil
}

func components(document openapi.GroupVersion) (map[string]object, error) {
	text, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	var read struct {
		Components struct {
			Schemas map[string]object `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	return read.Components.Schemas, nil
}

// kindsOf returns the kinds whose schema a component is, according to itself.
func kindsOf(component object) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, entry := range list(component["x-kubernetes-group-version-kind"]) {
		if entry, ok := entry.(object); ok {
			kinds = append(kinds, schema.GroupVersionKind{Group: text(entry["group"]), Version: text(entry["version"]),
				Kind: text(entry["kind"])})
		}
	}
	return kinds
}

// FileName returns kubeconform's {{ .ResourceKind }}{{ .KindSuffix }}.json, which
// contains only the first part of the group.
func FileName(kind schema.GroupVersionKind) string {
	parts := []string{kind.Kind}
	if kind.Group != "" {
		group, _, _ := strings.Cut(kind.Group, ".")
		parts = append(parts, group)
	}
	return strings.ToLower(strings.Join(append(parts, kind.Version), "-")) + ".json"
}

func write(folder string, kind schema.GroupVersionKind, content object) error {
	path := filepath.Join(folder, FileName(kind))
	text, err := json.MarshalIndent(content, "", " ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // schemas are for everybody to read
	}
	if err != nil {
		return fmt.Errorf("write the schema of %s: %w", kind.Kind, err)
	}
	return nil
}
