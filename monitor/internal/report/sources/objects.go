// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"encoding/json"
	"fmt"
)

// addObject adds a Kubernetes object of a kind that the report shows.
func (a *All) addObject(kind string, text []byte) (bool, error) {
	switch kind {
	case "ConfigMap":
		return a.addConfigMap(text)
	case "Benchmark": // its status has a part of what its ConfigMap has
		return true, nil
	case "AnalysisRun":
		return appendObject(kind, &a.Analyses, text)
	case "Pipeline":
		return appendObject(kind, &a.Pipelines, text)
	case "Task":
		return appendObject(kind, &a.Tasks, text)
	}
	return false, nil
}

func appendObject[T any](kind string, to *[]T, text []byte) (bool, error) {
	var object T
	if err := json.Unmarshal(text, &object); err != nil {
		return false, fmt.Errorf("object of kind %s: %w", kind, err)
	}
	*to = append(*to, object)
	return true, nil
}

// addConfigMap adds the results of a Benchmark.
func (a *All) addConfigMap(text []byte) (bool, error) {
	var object struct {
		Metadata struct {
			Metadata
			Owners []struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"ownerReferences"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return false, fmt.Errorf("object of kind ConfigMap: %w", err)
	}
	results, given := object.Data["results.json"]
	if !given {
		return false, nil
	}
	name := object.Metadata.Name
	for _, owner := range object.Metadata.Owners {
		if owner.Kind == "Benchmark" {
			name = owner.Name
		}
	}
	if err := a.addResults(name, object.Metadata.Namespace, []byte(results)); err != nil {
		return false, fmt.Errorf("ConfigMap %s: %w", object.Metadata.Name, err)
	}
	return true, nil
}
